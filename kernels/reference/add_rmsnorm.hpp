#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of an add_rmsnorm problem, every element of every row of both outputs. `inputs`
/// are X, residual, and weight where the problem has one; they are found by name. Bounds: the sum
/// is rounded once; rows::RmsNorm.
std::unique_ptr<Reference> add_rmsnorm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed);

}  // namespace greta::kernels
