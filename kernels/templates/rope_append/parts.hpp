#pragma once

#include <vector>

#include "kernels/model/problem.hpp"

namespace greta::kernels {

/// Implements Operation::parts of rope_append: the norms of heads, rope, and kv_update of each
/// sequence. Queries and keys with the same distance of tokens are rotated together, as heads of
/// one matrix.
std::vector<Problem> parts_of_rope_append(const Problem& problem);

}  // namespace greta::kernels
