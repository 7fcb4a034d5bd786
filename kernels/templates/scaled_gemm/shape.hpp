#pragma once

#include <cstdint>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem.hpp"

namespace greta::kernels::scaled_gemm {

/// What shares a scale.
enum class Scales : std::uint8_t {
  tensor,  ///< all elements of an operand
  row,     ///< a row of A, a row of B
  block,   ///< 128 k of a row of A; 128 k of 128 rows of B
};

/// The elements along k, and of B's blocks the rows, that share a scale.
inline constexpr std::int64_t scale_block = 128;

/// The dimensions, types and attributes of a problem.
struct Shape {
  std::int64_t m = 0, n = 0, k = 0;
  DType out = DType::bf16;
  ByteFormat format = ByteFormat::e4m3;
  Scales scales = Scales::tensor;

  bool integers() const { return format == ByteFormat::int8; }
  /// Return the extents of the scales of an operand with this many rows.
  std::int64_t scale_rows_a() const { return scales == Scales::tensor ? 1 : m; }
  std::int64_t scale_rows_b() const {
    if (scales == Scales::tensor) return 1;
    return scales == Scales::row ? n : (n + scale_block - 1) / scale_block;
  }
  std::int64_t scale_columns() const {
    return scales == Scales::block ? (k + scale_block - 1) / scale_block : 1;
  }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::scaled_gemm
