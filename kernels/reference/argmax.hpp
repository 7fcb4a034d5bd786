#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every row exactly: the lowest column of the row's largest value. NaN is smaller than all
/// other values, including -infinity. A row of NaN alone gives 0. Zeros of either sign are equal.
std::unique_ptr<Reference> argmax_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs,
                                            std::uint64_t seed);

}  // namespace greta::kernels
