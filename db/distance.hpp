#pragma once

#include <cstdint>
#include <span>

#include "kernels/model/problem.hpp"

namespace greta::db {

/// How far a shape may be and still count as near: on average, winners beyond cost more than the
/// operation's default (docs/lookup.md). A factor of e in one dimension.
constexpr double most_shape_distance = 1;

/// How far a problem that has a winner is from one that is wanted, where both differ in dimensions
/// alone: the root of the sum of squares of ln(wanted / recorded) over the dimensions. `recorded`:
/// its extents, in the order of the wanted problem's.
double shape_distance(const Problem& wanted, std::span<const std::int64_t> recorded);
/// The same; infinite where the problems differ in more than dimensions.
double shape_distance(const Problem& wanted, const Problem& recorded);

}  // namespace greta::db
