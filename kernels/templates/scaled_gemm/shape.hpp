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
  mx,      ///< 32 k of a row of A, and of B: microscaling formats, whose scales are powers of two
};

/// Requires tensor, row, block or mx.
inline Scales scales_from_string(std::string_view name) {
  return name == "row"     ? Scales::row
         : name == "block" ? Scales::block
         : name == "mx"    ? Scales::mx
                           : Scales::tensor;
}

/// What is done to the sums of a product, in the order of GATE in templates.
enum class Gate : std::uint8_t {
  none,
  swiglu,  ///< C = silu(gate) * up; the rows of B are those of gates, then those of ups
  geglu    ///< the same with gelu in its tanh form
};

/// The elements along k, and of B's blocks the rows, that share a scale.
inline constexpr std::int64_t scale_block = 128;
/// Those along k that share a scale of a microscaling format.
inline constexpr std::int64_t mx_block = 32;

/// The dimensions, types and attributes of a problem.
struct Shape : gemm::RowGroups {
  std::int64_t n = 0, k = 0;
  DType out = DType::bf16;
  ByteFormat format = ByteFormat::e4m3;    ///< of A, and but for Scales::mx of B
  ByteFormat format_b = ByteFormat::e4m3;  ///< of B
  Scales scales = Scales::tensor;
  Gate gate = Gate::none;

  bool integers() const { return format == ByteFormat::int8; }
  MatrixNumbers numbers() const { return integers() ? MatrixNumbers::int8 : MatrixNumbers::fp8; }
  bool mx() const { return scales == Scales::mx; }
  /// Returns whether scales change along k.
  bool block_scales() const { return scales == Scales::block || mx(); }
  /// Return the bytes of so many k of a line of A, and of B.
  std::int64_t bytes_a(std::int64_t count) const { return bytes_of_numbers(format, count); }
  std::int64_t bytes_b(std::int64_t count) const { return bytes_of_numbers(format_b, count); }
  bool gated() const { return gate != Gate::none; }
  /// Returns the columns of the product, which are the rows of B, or of each group's.
  std::int64_t products() const { return gated() ? 2 * n : n; }
  /// Return the extents of the scales of both operands.
  std::int64_t scale_rows_a() const { return scales == Scales::tensor ? groups : all_rows(); }
  std::int64_t scale_rows_b() const {
    if (scales == Scales::tensor) return groups;
    return groups * (scales == Scales::block ? ceil_div(products(), scale_block) : products());
  }
  std::int64_t scale_columns() const {
    return scales == Scales::block ? ceil_div(k, scale_block) : mx() ? ceil_div(k, mx_block) : 1;
  }
  DType scale_type() const { return mx() ? DType::u8 : DType::f32; }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::scaled_gemm
