#pragma once

#include <cstdint>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/problem.hpp"
#include "kernels/planning/stride_attributes.hpp"

namespace greta::kernels::quantize {

/// What shares a scale, with the numbers of SCALES in the sources.
enum class Scales : std::uint8_t {
  tensor,  ///< all elements; the scale is given
  row,     ///< a row
  block,   ///< 128 columns of a row
  mx,      ///< 32 columns of a row: microscaling formats, whose scales are powers of two
};

/// What is computed ahead of the quantisation, with the numbers of FUSED in the sources.
enum class Fused : std::uint8_t { none, rmsnorm, layernorm, add_rmsnorm, silu_mul };

/// The columns that share a scale of a block: those of scaled_gemm.
inline constexpr std::int64_t scale_block = 128;
/// The same of a microscaling format.
inline constexpr std::int64_t mx_block = 32;

/// The dimensions, types and attributes of a problem.
struct Shape {
  std::int64_t rows = 0, cols = 0;
  DType in = DType::bf16;
  ByteFormat format = ByteFormat::e4m3;
  Scales scales = Scales::row;
  Fused fused = Fused::none;
  bool packed = false;                ///< gate and up are halves of rows
  bool weight = false, bias = false;  ///< of the norm
  float epsilon = 0;
  std::int64_t x_stride = 0, q_stride = 0;
  Strides strides{};

  bool norm() const { return fused >= Fused::rmsnorm && fused <= Fused::add_rmsnorm; }
  /// Returns whether there is a second input that has rows.
  bool other() const {
    return fused == Fused::add_rmsnorm || (fused == Fused::silu_mul && !packed);
  }
  /// Returns whether parts of a row need nothing of each other.
  bool independent() const { return !norm() && scales != Scales::row; }
  std::int64_t packed_x() const { return packed ? 2 * cols : cols; }
  bool mx() const { return scales == Scales::mx; }
  /// Returns the columns that share a scale, if these are not a whole row.
  std::int64_t block() const { return mx() ? mx_block : scale_block; }
  bool block_scales() const { return scales == Scales::block || mx(); }
  /// Returns the bytes of a row of codes.
  std::int64_t code_bytes() const { return bytes_of_numbers(format, cols); }
  /// Return the extents of the scales.
  std::int64_t scale_rows() const { return scales == Scales::tensor ? 1 : rows; }
  std::int64_t scale_columns() const { return block_scales() ? (cols + block() - 1) / block() : 1; }
};

/// Requires a problem that check_problem() accepts.
Shape shape_of(const Problem& problem);

}  // namespace greta::kernels::quantize
