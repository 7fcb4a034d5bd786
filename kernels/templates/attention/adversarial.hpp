#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"

namespace greta::kernels::attention {

/// Operation::harden: sequences of any length, without keys and with more than there is room
/// for among them, and NaN in place of the keys and values behind their ends; queries all of whose
/// scores are far below or above 0, or equal; values that are huge, tiny, equal or of one sign.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, std::uint64_t seed);

}  // namespace greta::kernels::attention
