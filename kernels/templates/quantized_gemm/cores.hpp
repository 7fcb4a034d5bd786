#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/templates/quantized_gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

/// What the variants with matrix cores share.
namespace greta::kernels::quantized_gemm {

inline constexpr std::int64_t core_side = 16;  ///< of a matrix product
inline constexpr std::int64_t core_unit =
    128;  ///< weights that are multiplied before they are scaled

/// Returns whether weights are plain integers, with scales of groups beside them.
inline bool integers_in_groups(const Shape& shape) {
  return shape.format == WeightFormat::int4 || shape.format == WeightFormat::int8;
}

/// Returns whether the device's HIP kernels have matrix cores of A's type.
inline bool has_cores(const Shape& shape, const DeviceInfo& device) {
  return device.language == Language::hip && bits_of(shape.in) == 16 &&
         std::any_of(
             device.matrix_operations.begin(), device.matrix_operations.end(),
             [&](const MatrixOperation& o) { return o.input == shape.in && o.m == core_side; });
}

}  // namespace greta::kernels::quantized_gemm
