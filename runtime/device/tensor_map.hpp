#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/device/dtype.hpp"
#include "runtime/device/layers.hpp"

namespace greta::device {

/// A matrix in device memory from which kernels copy boxes to shared memory with one instruction
/// (NVIDIA's TMA, from sm_90 on). What lies outside of the matrix is copied as zeros. A row of a
/// box has 128 bytes. In shared memory, the 16-byte chunks of each row are swizzled as warpgroup
/// instructions require: chunk c of row r lies at place c ^ r % 8.
struct TensorMap {
  DType type = DType::f16;      ///< of the elements; f16, bf16 or f32
  std::uint64_t columns = 0;    ///< elements of a row
  std::uint64_t rows = 0;       ///< at most 2^32, as columns
  std::uint64_t row_bytes = 0;  ///< from one row to the next, a multiple of 16
  std::uint32_t box_rows = 0;   ///< rows of a copy, 1 to 256
  /// Not 0: rows are pairs, e.g. of a gate and its up. Row r is (r / 2) * row_bytes + (r % 2) *
  /// pair_bytes after the first one. A multiple of 16; `rows` and `box_rows` are even, and a box
  /// starts at an even row.
  std::uint64_t pair_bytes = 0;
  /// Not 0: a box has so many bytes of each row, one row after the other, a multiple of 16 and at
  /// most 512. Else it has 128, whose chunks of 16 are exchanged: chunk c of row r is at c ^ r % 8.
  std::uint32_t plain_bytes = 0;
  bool operator==(const TensorMap&) const = default;
};

/// Size and alignment of a tensor map in an argument block.
constexpr std::size_t tensor_map_bytes = 128, tensor_map_alignment = 64;

/// Columns of a box of 16-bit elements that is not plain, which fill 128 bytes; of f32, half as
/// many.
constexpr std::uint32_t box_columns = 64;

}  // namespace greta::device
