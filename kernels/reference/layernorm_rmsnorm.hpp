#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// FP64 reference of a layernorm_rmsnorm problem, every element of every row. `inputs` are X, and
/// weight and bias where the problem has them; they are found by name. Bounds: rows::LayerRmsNorm.
std::unique_ptr<Reference> layernorm_rmsnorm_reference(const Problem& problem,
                                                       const std::vector<HostTensor>& inputs,
                                                       std::uint64_t seed);

}  // namespace greta::kernels
