#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

struct SamplerOptions {
  double temperature = 0;  ///< 0: always the largest logit
  double top_p = 1;        ///< 0 < top_p <= 1: among the likeliest tokens that have this much
  std::uint64_t seed = 0;

  /// Throws Error `invalid_argument` that names the value.
  void check() const;
};

/// Chooses tokens by their logits. Equal logits and seeds give equal tokens on every machine:
/// probabilities are 64-bit integers, computed without the C library's functions.
class Sampler {
 public:
  /// Throws as SamplerOptions::check().
  explicit Sampler(const SamplerOptions& options);

  /// The next token. Of equal logits the lowest index is the largest, and comes first in top_p.
  /// Throws Error for logits that hold NaN or +infinity, or nothing but -infinity.
  std::int32_t next(std::span<const float> logits);

 private:
  struct Ranked {
    std::uint64_t weight;
    std::size_t index;
  };

  /// Leaves the weights of the likeliest alone, which have top_p of `total`; gives their sum.
  std::uint64_t keep_likeliest(std::uint64_t total);

  SamplerOptions options_;
  std::mt19937_64 random_;
  std::vector<std::uint64_t> weights_;  ///< of the last draw; kept for their memory
  std::vector<Ranked> order_;
};

/// The lowest index of the largest logit; throws as Sampler::next().
std::int32_t largest(std::span<const float> logits);

}  // namespace greta::runtime
