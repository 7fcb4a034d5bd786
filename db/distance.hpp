#pragma once

#include <cstdint>
#include <span>

#include "kernels/model/problem.hpp"

namespace greta::db {

/// The largest distance at which a shape counts as near. On average, winners of shapes beyond it
/// are slower than the operation's default (docs/lookup.md). 1 is a factor of e in one dimension.
constexpr double most_shape_distance = 1;

/// Returns the distance of a problem that has a winner from the wanted one, where both differ only
/// in dimensions: the square root of the sum of squares of ln(wanted / recorded) over the
/// dimensions. `recorded` holds its extents, in the order of the wanted problem's dimensions.
double shape_distance(const Problem& wanted, std::span<const std::int64_t> recorded);
/// Does the same for two problems. Returns infinity if they differ in more than dimensions.
double shape_distance(const Problem& wanted, const Problem& recorded);

}  // namespace greta::db
