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
inline constexpr std::string_view ceiling_fma_f32 = "fma_f32_gflops";  ///< an FMA counts as 2 FLOPs

/// Returns the name for the matrix cores with this input type and f32 accumulators:
/// "matrix_f16_gflops".
std::string ceiling_matrix(DType input);

/// Returns the name for the matrix cores with these numbers: "matrix_fp8_gflops".
std::string ceiling_matrix(MatrixNumbers numbers);

/// Returns the kinds that measure_ceilings() returns for a device.
std::vector<std::string> ceiling_kinds(const DeviceInfo& device);

/// Measures ceilings of a device: a copy far larger than its caches, independent chains of FP32
/// FMAs in registers, and the matrix operations that it lists. Each ceiling is the fastest of
/// several samples. A matrix rate that can't be measured is left out, with a warning in the log.
/// `kinds` are some of ceiling_kinds().
Result<std::vector<Ceiling>> measure_ceilings(Device& device,
                                              const std::vector<std::string>& kinds);

/// Returns the kinds of a device that are missing, or that were measured with another driver. An
/// impossible value (0, negative, infinite, NaN) counts as not measured.
std::vector<std::string> missing_kinds(const std::vector<Ceiling>& ceilings,
                                       const DeviceInfo& device);

/// Replaces ceilings of the same kinds, and adds the others.
void update(std::vector<Ceiling>& ceilings, std::vector<Ceiling> measured);

/// Returns the value of one kind, or 0 if it was not measured.
double ceiling(const std::vector<Ceiling>& ceilings, std::string_view kind);

/// Returns the kinds of arithmetic rates of which the highest counts for this work on inputs of
/// this type: FMAs, and matrix cores on the type and on the work's numbers. Those of eight bits
/// can be multiplied as f16, too.
std::vector<std::string> arithmetic_kinds(DType input, const Work& work);

/// Returns the highest of these rates in GFLOPS; 0 if unknown.
double arithmetic_gflops(DType input, const Work& work, const std::vector<Ceiling>& ceilings);

/// Returns the roofline time of this work on inputs of this type in microseconds; 0 if unknown.
double roofline_us(DType input, const Work& work, const std::vector<Ceiling>& ceilings);

}  // namespace greta::tuner
