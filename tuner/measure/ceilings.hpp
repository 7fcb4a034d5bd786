#pragma once

#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/device.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta {

/// Names of the ceilings that every device has.
inline constexpr std::string_view ceiling_copy = "copy_gbps";  ///< read plus written, 1e9 B/s
inline constexpr std::string_view ceiling_fma_f32 = "fma_f32_gflops";  ///< 2 per FMA

/// Measures a device's ceilings: a copy far larger than its caches, and independent chains of FP32
/// FMAs in registers. The fastest of several samples of each.
Result<std::vector<Ceiling>> measure_ceilings(Device& device);

/// The value of one kind, or 0.
double ceiling(const std::vector<Ceiling>& ceilings, std::string_view kind);

/// The shortest time in which the ceilings allow this work, in microseconds; 0 where unknown.
double roofline_us(const Work& work, const std::vector<Ceiling>& ceilings);

}  // namespace greta
