#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of an rmsnorm problem, every element of every row. `inputs` are X, and weight
/// where the problem has one; they are found by name. Bounds: rows::RmsNorm.
std::unique_ptr<Reference> rmsnorm_reference(const Problem& problem,
                                             const std::vector<HostTensor>& inputs,
                                             std::uint64_t seed);

}  // namespace greta::kernels
