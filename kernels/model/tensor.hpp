#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/dtype.hpp"

namespace greta::kernels {

enum class Role {
  input,
  output,        ///< filled with NaN before a checked launch
  input_output,  ///< read and written (beta != 0); restored before a checked launch
};

/// One operand of an operation: a row-major matrix. Rows begin at byte boundaries: the strides of
/// types of fewer than 8 bits are chosen accordingly.
struct TensorSpec {
  std::string name;  ///< e.g. "A"
  Role role = Role::input;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< leading dimension in elements; 0: cols, i.e. packed rows
  bool table = false;       ///< rows are selected by indices, and an invalid index gives NaN
  bool pool = false;        ///< an operand may have another number of rows, as indices select them

  std::int64_t row_stride() const { return stride > 0 ? stride : cols; }
  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  /// Returns the size from the first to the last element, including the gaps between rows.
  std::size_t bytes() const {
    return bytes_of(dtype, static_cast<std::size_t>((rows - 1) * row_stride() + cols));
  }

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
/// Returns the same matrix with packed rows.
HostTensor packed(HostTensor tensor);
/// Returns a packed matrix with leading dimension `stride` (see TensorSpec::stride) and NaN in the
/// gaps.
HostTensor spread(HostTensor tensor, std::int64_t stride);

/// Returns uniform values in (-0.5, 0.5), rounded to the tensor's type and never exactly 0. Equal
/// seeds give equal data on every machine, independently of the stride.
HostTensor random_tensor(const TensorSpec& spec, std::uint64_t seed);

}  // namespace greta::kernels
