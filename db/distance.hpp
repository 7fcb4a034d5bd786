#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "kernels/model/problem.hpp"

namespace greta::db {

/// How far a problem that has a winner is from one that is wanted, where both differ in dimensions
/// alone. docs/lookup.md says how these were compared, and on what.
struct ShapeDistance {
  std::string_view name;     ///< "sum"
  std::string_view summary;  ///< one line
  /// `recorded`: its extents, in the order of the wanted problem's. Not negative; what it is for
  /// equal shapes does not matter.
  double (*between)(const Problem& wanted, std::span<const std::int64_t> recorded);
};

/// The explicit list of what was compared; the first one is the one that is used.
const std::vector<ShapeDistance>& shape_distances();

/// How far a shape may be and still count as near: on average, winners beyond cost more than the
/// operation's default. A factor of e in one dimension.
constexpr double most_shape_distance = 1;

/// The distance that is used. Infinite where the problems differ in more than dimensions; 0 only
/// for equal ones.
double shape_distance(const Problem& wanted, const Problem& recorded);

}  // namespace greta::db
