#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/tensor.hpp"

namespace greta::kernels::sampled {

/// The arithmetic of sample's kernels, which every device gives bit for bit (docs/sampling.md):
/// distances are differences and products in f32, and then integers; probabilities and their sums
/// are integers.

/// With this temperature, a difference of logits is a distance in octaves, without an error.
inline constexpr float octave_temperature = 0x1.715476p+0F;

/// A token with a probability.
struct Weighed {
  std::int64_t column = 0;
  std::uint32_t distance = 0;  ///< to the largest logit, in 2^-24 octaves
  std::uint32_t weight = 0;    ///< 2^29 - 1 for the largest
};

/// Returns the tokens of a row that a temperature above 2^-64 gives a weight of `least` or more:
/// the nearest first, and of those equally near the first column.
std::vector<Weighed> weighed(const HostTensor& x, std::int64_t row, float temperature,
                             std::uint32_t least = 1);
/// Returns the share top_p, which is below 1, of a sum of weights.
std::uint64_t share_of(std::uint64_t mass, float top_p);

/// A row's settings, and the key and the counter of its random number.
struct Draw {
  float temperature = 0, top_k = 0, top_p = 0, min_p = 0;
  std::uint32_t key[2] = {}, offset = 0;
};

/// Returns the draw's 64 random bits.
std::uint64_t random_bits(const Draw& draw);
/// Returns the tokens that a draw with a temperature keeps, in the order of weighed(): at least one
/// of a row that has logits above -inf.
std::vector<Weighed> kept(const HostTensor& x, std::int64_t row, const Draw& draw);
/// Returns a random number's place in a sum of weights, which the weights pass in order of columns.
std::uint64_t place_in(std::uint64_t mass, std::uint64_t random);
/// Returns the token that the draw gives; -1 for a row without logits above -inf.
std::int64_t drawn(const HostTensor& x, std::int64_t row, const Draw& draw);

}  // namespace greta::kernels::sampled
