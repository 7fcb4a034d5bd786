#pragma once

#include <cstdint>

#include "runtime/device/layers.hpp"

/// Elements of the matrices of hip-host's library of matrix products.
namespace greta::device::hip::host {

/// Types of elements: hipDataType, and with the same numbers cudaDataType.
inline constexpr int type_f32 = 0, type_f16 = 2, type_i8 = 3, type_i32 = 10, type_bf16 = 14,
                     type_e4m3 = 28;

std::int64_t bytes_of_type(int type);

/// Returns an element of a matrix.
double load_element(const void* from, int type, std::uint64_t at);
/// Stores an element of a matrix, rounded to nearest. No type of eight bits is stored.
void store_element(void* to, int type, std::uint64_t at, double value);

/// The scales of an operand.
struct OperandScales {
  const float* first = nullptr;
  std::int32_t mode = 0;  ///< a ScaleMode

  /// Returns the scale of an element of an operand with `lines` rows of op(A), or columns of op(B),
  /// of `depth` elements. Layouts are those of cuBLASLt's documentation, "scaling factors layouts".
  double at(std::uint64_t line, std::uint64_t k, std::uint64_t lines, std::uint64_t depth) const;
  bool of_blocks() const;
};

}  // namespace greta::device::hip::host
