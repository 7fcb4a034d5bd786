#pragma once

#include <memory>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Checks every element of caches to which new keys and values are appended from `position` on.
/// Appended elements are exact, or rounded once to a smaller type. All other elements must be
/// unchanged, bit for bit. Tokens beyond the capacity of the caches are dropped.
std::unique_ptr<Reference> kv_update_reference(const Problem& problem,
                                               const std::vector<HostTensor>& inputs,
                                               std::uint64_t seed);

}  // namespace greta::kernels
