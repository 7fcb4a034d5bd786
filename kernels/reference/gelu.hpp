#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of out = gelu(x), in the form with erf or with tanh. Error bound: the
/// evaluation in f32 (activation.hpp) and one rounding to the output's type.
std::unique_ptr<Reference> gelu_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

}  // namespace greta::kernels
