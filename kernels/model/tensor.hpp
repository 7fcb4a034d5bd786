#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "kernels/model/dtype.hpp"

namespace greta {

enum class Role {
  input,
  output,        ///< filled with NaN before a checked launch
  input_output,  ///< read and written (beta != 0); restored before a checked launch
};

/// One operand of an operation: a packed row-major matrix.
struct TensorSpec {
  std::string name;  ///< "A"
  Role role = Role::input;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;

  std::size_t elements() const {
    return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
  }
  std::size_t bytes() const { return elements() * size_of(dtype); }

  bool operator==(const TensorSpec&) const = default;
};

/// A tensor's data on the host.
struct HostTensor {
  TensorSpec spec;
  std::vector<std::byte> data;

  double at(std::size_t index) const { return load_element(spec.dtype, data.data(), index); }
};

/// Uniform in [-0.5, 0.5), rounded to the tensor's type, never exactly 0. Equal seeds give equal
/// data on every machine.
HostTensor random_tensor(const TensorSpec& spec, std::uint64_t seed);

}  // namespace greta
