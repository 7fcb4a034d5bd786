#pragma once

#include <array>
#include <cstdint>

#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::kernels {

constexpr int most_in_cluster = 8;  ///< workgroups; on every device that has clusters

/// Returns the compute units that clusters of `blocks` workgroups, one on a unit, can use: they lie
/// within a GPC, here counted as 16 units, and some GPCs lack units.
std::int64_t units_of_clusters(const DeviceInfo& device, int blocks);

/// Returns their share of all compute units.
double usable_by_clusters(const DeviceInfo& device, int blocks);

/// Returns the grid of `count` clusters of `blocks` workgroups that are neighbours along its first
/// dimension, with `slices` along its third. There may be more.
std::array<std::uint32_t, 3> clustered_grid(const DeviceInfo& device, const KernelSource& kernel,
                                            std::int64_t count, int blocks, int slices);

/// Returns the number of clusters that run at the same time, at least one, where each unit has
/// `of_unit` workgroups.
std::int64_t resident_clusters(const DeviceInfo& device, int blocks, int of_unit = 1);

}  // namespace greta::kernels
