#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// The lowest column of each row's largest value; every row is checked, exactly. A NaN is below all
/// other values, -infinity included; a row of nothing else gives 0. Zeros are equal, whatever their
/// sign.
std::unique_ptr<Reference> argmax_reference(const Problem& problem,
                                            const std::vector<HostTensor>& inputs,
                                            std::uint64_t seed);

}  // namespace greta::kernels
