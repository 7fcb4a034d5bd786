#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/dtype.hpp"

namespace greta::kernels {

enum class Role {
  input,
  output,        ///< filled with NaN before a checked launch
  input_output,  ///< read and written (beta != 0); restored before a checked launch
};

/// One operand of an operation: a row-major matrix, whose rows can be in blocks at equal distances.
/// Rows begin at byte boundaries: the strides of types of fewer than 8 bits are chosen accordingly.
struct TensorSpec {
  std::string name;  ///< e.g. "A"
  Role role = Role::input;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< leading dimension in elements; 0: cols, i.e. packed rows
  bool table = false;       ///< rows are selected by indices, and an invalid index gives NaN
  bool pool = false;        ///< an operand may have another number of rows, as indices select them
  /// Rows of a block and elements from one block to the next, e.g. of the matrices of a batch; 0:
  /// all rows are `stride` apart. Blocks can lie between the rows of others.
  std::int64_t block_rows = 0, block_stride = 0;
  /// Elements from a multiple of 256 bytes to the first element: how the operand is aligned.
  std::int64_t offset = 0;
  /// Bytes of which the first element's address must be a multiple, as kernels load it; a power of
  /// 2. 0: what the element type requires.
  std::int64_t alignment = 0;

  std::int64_t row_stride() const { return stride > 0 ? stride : cols; }
  /// Returns the index of a row's first element, from the first row's on.
  std::int64_t row_start(std::int64_t row) const {
    if (block_rows == 0) return row * row_stride();
    return row / block_rows * block_stride + row % block_rows * row_stride();
  }
  /// Returns the row and the column of the element this far after the first one. The column of what
  /// lies between rows is `cols` or more.
  std::pair<std::int64_t, std::int64_t> place(std::int64_t element) const;
  /// Returns whether each row begins where the one before ends.
  bool contiguous() const { return block_rows == 0 && (row_stride() == cols || rows == 1); }
  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  /// Returns the number of elements from the first to the last one, including the gaps between
  /// rows.
  std::int64_t span() const { return row_start(rows - 1) + cols; }
  std::size_t bytes() const { return bytes_of(dtype, static_cast<std::size_t>(span())); }

  bool operator==(const TensorSpec&) const = default;
};

/// The data of a tensor on the host.
struct HostTensor {
  TensorSpec spec;
  std::vector<std::byte> data;

  double at(std::size_t index) const { return load_element(spec.dtype, data.data(), index); }
};

/// Returns the tensor of this name. Throws Error if there is none.
const HostTensor& tensor_named(const std::vector<HostTensor>& tensors, std::string_view name);
/// Returns the same matrix with packed rows, at no offset.
TensorSpec packed(TensorSpec spec);
HostTensor packed(HostTensor tensor);
/// Returns a packed matrix whose rows are where those of `as` are, with NaN in the gaps.
HostTensor placed(HostTensor tensor, const TensorSpec& as);

/// Returns uniform values in (-0.5, 0.5), rounded to the tensor's type and never exactly 0. Equal
/// seeds give equal data on every machine, independently of where rows are.
HostTensor random_tensor(const TensorSpec& spec, std::uint64_t seed);

}  // namespace greta::kernels
