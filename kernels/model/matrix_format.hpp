#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/byte_formats.hpp"
#include "kernels/model/weight_formats.hpp"
#include "kernels/model/weight_packing.hpp"
#include "kernels/model/weight_panels.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::kernels {

/// Numbers of eight bits with f32 scales beside them.
struct ScaledFormat {
  static constexpr std::int64_t block = 128;  ///< rows and columns that share a scale

  ByteFormat numbers = ByteFormat::e4m3;
  bool blocks = false;  ///< whether blocks of 128 x 128 share a scale; else each row has one
  /// Whether all rows that the matrix multiplies are quantised with one given scale (static
  /// activations), not with blocks. Else each row, or 128 columns of it, has its own.
  bool given_input = false;

  bool operator==(const ScaledFormat&) const = default;

  std::int64_t scale_rows(std::int64_t rows) const {
    return blocks ? (rows + block - 1) / block : rows;
  }
  std::int64_t scale_cols(std::int64_t cols) const {
    return blocks ? (cols + block - 1) / block : 1;
  }
};

/// How a matrix of weights is stored: as numbers of a type that is known elsewhere, or quantised as
/// one of the operations `quantized_gemm` and `scaled_gemm` takes it.
struct MatrixFormat {
  std::optional<WeightFormat> quantised{};  ///< for `quantized_gemm`
  std::int64_t group = 0;  ///< weights that share a scale which lies beside them; 0: none does
  bool zeros = false;      ///< with these: whether each group has a zero point
  std::optional<ScaledFormat> scaled{};  ///< for `scaled_gemm`
  /// 0: columns are in order. Otherwise rows that the matrix multiplies have their columns gathered
  /// in its order first. Of matrices that multiply the same rows, those of equal numbers have equal
  /// orders.
  int order = 0;
  /// Of quantised weights with scales beside them: whether they are stored in panels of 16 rows
  /// (weight_packing.hpp) and not in rows.
  bool panels = false;

  bool operator==(const MatrixFormat&) const = default;

  /// Returns whether the matrix is neither quantised nor scaled.
  bool plain() const { return !quantised && !scaled; }
  /// Returns whether so many rows may be stored in panels.
  bool may_have_panels(std::int64_t rows) const {
    return quantised && !in_blocks(*quantised) && rows % panel_rows == 0;
  }
  /// Returns the weights of a block or group, of which a row has a whole number.
  std::int64_t unit() const {
    if (scaled) return 16;  // whole loads
    if (!quantised) return 1;
    return in_blocks(*quantised) ? block_weights(*quantised) : group;
  }
  /// Returns the groups of a row that have scales of their own; 0 without such.
  std::int64_t groups(std::int64_t cols) const { return group > 0 ? cols / group : 0; }
  /// Returns the bytes of a scale that lies beside quantised weights.
  std::int64_t scale_bytes() const { return quantised == WeightFormat::mxfp4 ? 1 : 2; }
  /// Returns the bytes of a row without scales and zero points that are stored beside it. `dtype`
  /// is that of numbers.
  std::int64_t row_bytes(DType dtype, std::int64_t cols) const {
    if (scaled) return cols;
    return quantised ? kernels::row_bytes(*quantised, cols)
                     : static_cast<std::int64_t>(bytes_of(dtype, static_cast<std::size_t>(cols)));
  }
  /// Returns all bytes of a matrix. Scales have scale_bytes(), those of scaled numbers four, zero
  /// points one. The order of its columns is not counted.
  std::int64_t bytes(DType dtype, std::int64_t rows, std::int64_t cols) const {
    if (scaled) return rows * cols + 4 * scaled->scale_rows(rows) * scaled->scale_cols(cols);
    return rows * (row_bytes(dtype, cols) + groups(cols) * (scale_bytes() + (zeros ? 1 : 0)));
  }
};

}  // namespace greta::kernels
