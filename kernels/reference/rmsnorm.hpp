#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of an rmsnorm problem, which checks every element. `inputs` contain X
/// and, if the problem has one, weight, by name. Error bounds: rows::RmsNorm.
std::unique_ptr<Reference> rmsnorm_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

}  // namespace greta::kernels
