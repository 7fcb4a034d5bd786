#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of C = A + B. Error bound: 2^-24 of the sum and 2^-126 (devices may flush)
/// for one f32 addition, then one rounding to the output's type.
std::unique_ptr<Reference> add_reference(const Problem& problem,
                                         const std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels
