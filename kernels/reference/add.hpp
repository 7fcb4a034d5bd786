#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// C = A + B. One f32 addition (2^-24 of the sum, and the smallest normal f32 number for devices
/// that flush), then one rounding to the output's type; every element is checked.
std::unique_ptr<Reference> add_reference(const Problem& problem,
                                         const std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels
