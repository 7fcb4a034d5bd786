#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// out = silu(gate) * up. The error is that of silu's evaluation in f32 (activation.hpp) times
/// |up|, one more rounding for the product, and one to the output's type; and 2^-126 (1 +
/// |silu(gate)|
/// + |up|), as devices may flush up, silu(gate) and the product. Every element is checked.
std::unique_ptr<Reference> silu_mul_reference(const Problem& problem,
                                              const std::vector<HostTensor>& inputs,
                                              std::uint64_t seed);

}  // namespace greta::kernels
