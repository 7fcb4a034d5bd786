#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::sampling {

/// Returns logits with about the standard normal distribution, and settings of top-p alone, 0.9.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);

/// Mixes in rows of all magnitudes, of few values, NaN and infinities, and every kind of setting:
/// each off, usual, at its limits, invalid, and such that a border is at one of the row's tokens.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::sampling
