#pragma once

#include <cstdint>
#include <optional>

#include "kernels/model/weight_formats.hpp"
#include "runtime/device/dtype.hpp"

namespace greta::kernels {

/// How a matrix of weights is stored: as numbers of a type that is known elsewhere, or quantised as
/// the operation `quantized_gemm` takes it.
struct MatrixFormat {
  std::optional<WeightFormat> quantised{};  ///< empty: numbers
  std::int64_t group = 0;                   ///< weights that share a scale, with int4 and int8
  bool zeros = false;                       ///< with these: whether each group has a zero point

  bool operator==(const MatrixFormat&) const = default;

  /// Returns the weights of a block or group, of which a row has a whole number.
  std::int64_t unit() const {
    if (!quantised) return 1;
    return in_blocks(*quantised) ? block_weights(*quantised) : group;
  }
  /// Returns the groups of a row that have scales of their own; 0 without such.
  std::int64_t groups(std::int64_t cols) const { return group > 0 ? cols / group : 0; }
  /// Returns the bytes of a row without scales and zero points that are stored beside it. `dtype`
  /// is that of numbers.
  std::int64_t row_bytes(DType dtype, std::int64_t cols) const {
    return quantised ? kernels::row_bytes(*quantised, cols)
                     : static_cast<std::int64_t>(bytes_of(dtype, static_cast<std::size_t>(cols)));
  }
  /// Returns all bytes of a matrix. Scales have two bytes, zero points one.
  std::int64_t bytes(DType dtype, std::int64_t rows, std::int64_t cols) const {
    return rows * (row_bytes(dtype, cols) + groups(cols) * (zeros ? 3 : 2));
  }
};

}  // namespace greta::kernels
