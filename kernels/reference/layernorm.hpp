#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Returns the FP64 reference of a layernorm problem, which checks every element. `inputs` contain
/// X and, if the problem has them, weight and bias, by name. Error bounds: rows::LayerNorm.
std::unique_ptr<Reference> layernorm_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
