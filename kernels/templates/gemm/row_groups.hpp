#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/model/expression.hpp"

/// Where the rows of products are, and the lines of tiles that they have.
namespace greta::kernels::gemm {

/// Whether a problem is one product, or one for each of several groups of rows: one after the
/// other, or each in a block of m rows of which the first ones count; or a batch of products that
/// have their matrices at equal distances (common/groups.hip).
enum class Grouping { none, contiguous, masked, batch };

/// The rows of one product or of several.
struct RowGroups {
  std::int64_t m = 0;
  Grouping grouping = Grouping::none;
  std::int64_t groups = 1;  ///< products: each has an op(B)

  /// Return whether there are several products, and whether they are groups of rows.
  bool several() const { return grouping != Grouping::none; }
  bool grouped() const { return several() && grouping != Grouping::batch; }
  /// Returns the rows of A and C.
  std::int64_t all_rows() const { return grouping == Grouping::masked ? groups * m : m; }
  /// Returns the rows of a group in the mean, as far as they are known before a launch: a masked
  /// one is taken as half full.
  std::int64_t rows_of_group() const {
    if (!grouped()) return m;
    const std::int64_t parts = grouping == Grouping::masked ? 2 : groups;
    return (m + parts - 1) / parts;
  }
};

/// Returns the lines of tiles of `height` rows that a launch has: enough for any rows of the
/// groups. The height is a number or an expression.
template <typename Height>
auto launched_lines(const RowGroups& rows, const Height& height) {
  using Lines = decltype(ceil_div(rows.m, height));
  if (rows.grouping == Grouping::contiguous) return Lines(rows.m / height + rows.groups);
  return Lines(rows.groups * ceil_div(rows.m, height));
}
/// Returns the lines of tiles that have rows, for groups of equal length.
inline std::int64_t filled_lines(const RowGroups& rows, std::int64_t height) {
  return rows.groups * ceil_div(rows.rows_of_group(), height);
}
/// Returns the lines of tiles that have rows, in the mean: of groups with 3/4 to 5/4 of the mean
/// number of these, and no more than are launched.
inline double expected_lines(const RowGroups& rows, std::int64_t height) {
  if (!rows.grouped()) return static_cast<double>(filled_lines(rows, height));
  constexpr int samples = 16;
  const auto mean = static_cast<double>(rows.rows_of_group());
  double lines = 0;
  for (int i = 0; i < samples; ++i) {
    lines += std::ceil(mean * (0.75 + 0.5 * (i + 0.5) / samples) / static_cast<double>(height));
  }
  return std::min(lines / samples * static_cast<double>(rows.groups),
                  static_cast<double>(launched_lines(rows, height)));
}
/// Returns the tiles that have rows, likewise. A Shape is a RowGroups whose products() are columns.
template <typename Shape>
double expected_tiles(const Shape& shape, std::int64_t height, std::int64_t columns) {
  return expected_lines(shape, height) * static_cast<double>(ceil_div(shape.products(), columns));
}

}  // namespace greta::kernels::gemm
