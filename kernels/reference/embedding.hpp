#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// out = the table's rows that the ids name: exact, or rounded once to a smaller type; every
/// element is checked. An id that the table does not have gives a row of NaN.
std::unique_ptr<Reference> embedding_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
