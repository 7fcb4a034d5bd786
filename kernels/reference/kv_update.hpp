#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Appends new keys and values to their caches, from `position` on; everything else in the caches
/// stays as it is, bit for bit. What is appended is exact, or rounded once to a smaller type; every
/// element is checked. Tokens for which the caches have no room are left out.
std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
