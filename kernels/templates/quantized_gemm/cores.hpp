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

/// Returns how often a workgroup's threads wait while they copy k elements of all rows of A to
/// shared memory, of which each has some vectors of eight in flight; a wait takes twice what other
/// loads' do (fitted to times of an H200).
inline double rounds_of_rows(const Shape& shape, double threads, double k) {
  const double in_flight = shape.norm ? 1 : shape.few_rows() ? 2 : 4;
  return 2 * static_cast<double>(shape.m) * k / 8 / (threads * in_flight);
}

}  // namespace greta::kernels::quantized_gemm
