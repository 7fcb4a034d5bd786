#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// How tokens are drawn. Of the softmax of logits / temperature, min_p is applied first, then
/// top_k, and then top_p to what remains.
struct SamplerOptions {
  double temperature = 0;  ///< 0: always the largest logit
  double top_p = 1;        ///< in (0, 1]: samples from the most likely tokens with this total
  std::uint64_t seed = 0;
  std::int64_t top_k = 0;  ///< samples from this number of most likely tokens; 0: from all
  double min_p = 0;        ///< in [0, 1]: drops tokens below this share of the largest probability
  /// Of the logits of tokens that the sequence has already, prompt included, by
  /// Operations::sample() alone. A logit above 0 is divided by `repetition`, another one multiplied
  /// by it (0.01 to 100); then `frequency` times the number of times that the token occurs, and
  /// `presence` (-100 to 100), are subtracted.
  double repetition = 1, frequency = 0, presence = 0;

  /// Throws Error that names the invalid value.
  void check() const;
  bool penalises() const { return repetition != 1 || frequency != 0 || presence != 0; }
};

/// Samples tokens from logits. Equal logits and seeds give equal tokens on every machine, because
/// probabilities are 64-bit integers that are computed without the C library's functions.
class Sampler {
 public:
  /// Throws Error like SamplerOptions::check(), and for penalties.
  explicit Sampler(const SamplerOptions& options);

  /// Returns the next token. Equal logits are ordered by index, also in top_k and top_p. Throws
  /// Error if the logits contain NaN or +infinity, or only -infinity.
  std::int32_t next(std::span<const float> logits);

 private:
  struct Ranked {
    std::uint64_t weight;
    std::size_t index;
  };

  /// Sets the weights of tokens that top_k and top_p drop of `total` to 0, and returns the sum of
  /// the others.
  std::uint64_t keep_likeliest(std::uint64_t total);

  SamplerOptions options_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> weights_;  ///< of the last draw; kept to reuse the memory
  std::vector<Ranked> order_;
};

/// Returns the lowest index of the largest logit. Throws Error like Sampler::next().
std::int32_t largest(std::span<const float> logits);

}  // namespace greta::runtime
