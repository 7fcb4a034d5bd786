#pragma once

#include <cstdint>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/attention/shape.hpp"

namespace greta::kernels::attention {

/// Implements Operation::harden. Sequences have any length, including 0 and more than the capacity,
/// with NaN in the keys and values after their ends. Scores of some queries are far below or above
/// 0, or equal; other queries point at a key, most of these at a border of what they see. Values
/// are huge, tiny, equal or of one sign.
void harden(const Problem& problem, std::vector<HostTensor>& inputs, const InputSeed& seed);
/// The same for another operation with this shape. `inputs` are Q, K, V and lengths, then the block
/// table if there are pages.
void harden_operands(const Shape& s, std::vector<HostTensor>& inputs, const InputSeed& seed);

}  // namespace greta::kernels::attention
