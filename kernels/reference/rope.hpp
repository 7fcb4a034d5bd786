#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Rotates the pairs of each head: (a, b) becomes (a cos - b sin, a sin + b cos), cos and sin being
/// the table's in the row of the token's position. A product and the sum round by 2^-24 each, of
/// |a cos| + |b sin| at most, and the result once more to its type; every element is checked. A
/// position outside of the table gives NaN.
std::unique_ptr<Reference> rope_reference(const Problem& problem,
                                          const std::vector<HostTensor>& inputs,
                                          std::uint64_t seed);

}  // namespace greta::kernels
