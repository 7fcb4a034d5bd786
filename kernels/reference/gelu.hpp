#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// out = gelu(x), in its form with erf or with tanh. The error is that of the function's evaluation
/// in f32 (activation.hpp), and one rounding to the output's type; every element is checked.
std::unique_ptr<Reference> gelu_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

}  // namespace greta::kernels
