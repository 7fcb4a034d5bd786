#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/templates/gemm/row_groups.hpp"

namespace greta::kernels::scaled_gemm {

/// What shares a scale.
enum class Scales : std::uint8_t {
  tensor,  ///< all elements of an operand
  row,     ///< a row of A, a row of B
  block,   ///< 128 k of a row of A; 128 k of 128 rows of B
};

/// Requires tensor, row or block.
inline Scales scales_from_string(std::string_view name) {
  return name == "row" ? Scales::row : name == "block" ? Scales::block : Scales::tensor;
}

/// What is done to the sums of a product, in the order of GATE in templates.
enum class Gate : std::uint8_t {
  none,
  swiglu,  ///< C = silu(gate) * up; the rows of B are those of gates, then those of ups
  geglu    ///< the same with gelu in its tanh form
};

/// The elements along k, and of B's blocks the rows, that share a scale.
inline constexpr std::int64_t scale_block = 128;

/// The dimensions, types and attributes of a problem.
struct Shape : gemm::RowGroups {
  std::int64_t n = 0, k = 0;
  DType out = DType::bf16;
  ByteFormat format = ByteFormat::e4m3;
  Scales scales = Scales::tensor;
  Gate gate = Gate::none;

  bool integers() const { return format == ByteFormat::int8; }
  bool gated() const { return gate != Gate::none; }
  /// Returns the columns of the product, which are the rows of B, or of each group's.
  std::int64_t products() const { return gated() ? 2 * n : n; }
  /// Return the extents of the scales of both operands.
  std::int64_t scale_rows_a() const { return scales == Scales::tensor ? groups : all_rows(); }
  std::int64_t scale_rows_b() const {
    if (scales == Scales::tensor) return groups;
    return groups * (scales == Scales::row ? products() : ceil_div(products(), scale_block));
  }
  std::int64_t scale_columns() const {
    return scales == Scales::block ? (k + scale_block - 1) / scale_block : 1;
  }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::scaled_gemm
