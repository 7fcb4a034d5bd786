#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of the rotation of each head's pairs: (a, b) becomes (a cos - b sin, a sin
/// + b cos), with cos and sin from the table row of the token's position. Error bound: 2^-24 (|a
/// cos| + |b sin|) each for a product and the sum, and one rounding to the output's type. A
/// position outside of the table gives NaN.
std::unique_ptr<Reference> rope_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

}  // namespace greta::kernels
