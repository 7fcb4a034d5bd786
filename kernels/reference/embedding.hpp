#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of out = the rows of the table that ids select: exact, or rounded once to a
/// smaller type. An invalid id gives a row of NaN.
std::unique_ptr<Reference> embedding_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
