#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of out = silu(gate) * up. Error bound: the error of silu in f32
/// (activation.hpp) times |up|, one rounding for the product, one rounding to the output's type,
/// and 2^-126 (1 + |silu(gate)| + |up|) because devices may flush up, silu(gate) and the product.
std::unique_ptr<Reference> silu_mul_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t seed);

}  // namespace greta::kernels
