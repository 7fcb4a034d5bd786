#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of an add_rmsnorm problem, which checks every element of both
/// outputs. `inputs` contain X, residual and, if the problem has one, weight, by name. Error
/// bounds: one rounding for the sum, rows::RmsNorm for Y.
std::unique_ptr<Reference> add_rmsnorm_reference(const Problem& problem,
                                                 const std::vector<HostTensor>& inputs,
                                                 std::uint64_t seed);

}  // namespace greta::kernels
