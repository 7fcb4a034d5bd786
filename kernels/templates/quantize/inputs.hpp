#pragma once

#include <vector>

#include "kernels/model/problem.hpp"
#include "kernels/model/tensor.hpp"

namespace greta::kernels::quantize {

/// Implements Operation::input: random numbers, and a scale that spreads them over the format.
HostTensor input(const Problem& problem, const TensorSpec& spec, std::uint64_t seed);

/// Implements Operation::harden: rows of extreme numbers, also with NaN, and where nothing is fused
/// with infinities; a scale that is zero, negative, subnormal, infinite or makes numbers saturate.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::quantize
