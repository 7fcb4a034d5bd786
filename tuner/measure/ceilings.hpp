#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// Names of the ceilings that every device has.
inline constexpr std::string_view ceiling_copy = "copy_gbps";  ///< read plus written, 1e9 B/s
inline constexpr std::string_view ceiling_fma_f32 = "fma_f32_gflops";  ///< 2 per FMA

/// Of a device's matrix cores for inputs of a type, with f32 sums: "matrix_f16_gflops".
std::string ceiling_matrix(DType input);

/// The kinds that measure_ceilings() gives for a device.
std::vector<std::string> ceiling_kinds(const DeviceInfo& device);

/// Measures a device's ceilings: a copy far larger than its caches, independent chains of FP32 FMAs
/// in registers, and of the matrix operations that it lists. The fastest of several samples of
/// each. A matrix rate that can't be measured is left out, which is logged.
Result<std::vector<Ceiling>> measure_ceilings(Device& device);

/// Whether these are all the ceilings of a device, measured with the driver it has. A value that no
/// device has (0, negative, infinite, NaN) was not measured.
bool complete(const std::vector<Ceiling>& ceilings, const DeviceInfo& device);

/// The value of one kind, or 0 where it was not measured.
double ceiling(const std::vector<Ceiling>& ceilings, std::string_view kind);

/// What a device can compute with inputs of this type, in GFLOPS: its FMA rate, or that of its
/// matrix cores where it is higher; 0 where unknown.
double arithmetic_gflops(DType input, const std::vector<Ceiling>& ceilings);

/// The shortest time in which the ceilings allow this work on inputs of this type, in microseconds;
/// 0 where unknown.
double roofline_us(DType input, const Work& work, const std::vector<Ceiling>& ceilings);

}  // namespace greta::tuner
