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

/// One operand of an operation: a row-major matrix. Rows begin at whole bytes: the strides of types
/// of fewer than 8 bits are chosen so.
struct TensorSpec {
  std::string name;  ///< "A"
  Role role = Role::input;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< elements from one row to the next; 0: cols, rows are packed
  bool table = false;       ///< indices name its rows, and one that it does not have gives NaN

  std::int64_t row_stride() const { return stride > 0 ? stride : cols; }
  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  /// From the first element to the last, with what lies between rows.
  std::size_t bytes() const {
    return bytes_of(dtype, static_cast<std::size_t>((rows - 1) * row_stride() + cols));
  }

  bool operator==(const TensorSpec&) const = default;
};

/// A tensor's data on the host.
struct HostTensor {
  TensorSpec spec;
  std::vector<std::byte> data;

  double at(std::size_t index) const { return load_element(spec.dtype, data.data(), index); }
};

/// The tensor of this name. Throws Error where there is none.
const HostTensor& tensor_named(const std::vector<HostTensor>& tensors, std::string_view name);
/// The same matrix with packed rows.
HostTensor packed(HostTensor tensor);
/// A packed matrix with its rows `stride` elements apart, as TensorSpec::stride, and NaN between.
HostTensor spread(HostTensor tensor, std::int64_t stride);

/// Uniform in [-0.5, 0.5), rounded to the tensor's type, never exactly 0. Equal seeds give equal
/// data on every machine, wherever rows lie.
HostTensor random_tensor(const TensorSpec& spec, std::uint64_t seed);

}  // namespace greta::kernels
