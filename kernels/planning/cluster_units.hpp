#pragma once

#include <cstdint>

#include "runtime/device/device_info.hpp"

namespace greta::kernels {

/// Returns the compute units that clusters of `blocks` workgroups, one on a unit, can use: they lie
/// within a GPC, here counted as 16 units, and some GPCs lack units.
std::int64_t units_of_clusters(const DeviceInfo& device, int blocks);

/// Returns their share of all compute units.
double usable_by_clusters(const DeviceInfo& device, int blocks);

}  // namespace greta::kernels
