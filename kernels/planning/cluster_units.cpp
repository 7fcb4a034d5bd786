#include "kernels/planning/cluster_units.hpp"

#include <algorithm>

#include "kernels/planning/device_limits.hpp"
#include "kernels/planning/plan.hpp"

namespace greta::kernels {

std::int64_t units_of_clusters(const DeviceInfo& device, int blocks) {
  constexpr std::int64_t of_gpc = 16;
  const std::int64_t units = busy_workgroups(device);
  const std::int64_t usable = units * 10 / 11 * (of_gpc / blocks * blocks) / of_gpc;
  return blocks <= 2 ? units : std::max<std::int64_t>(1, usable);
}

double usable_by_clusters(const DeviceInfo& device, int blocks) {
  return static_cast<double>(units_of_clusters(device, blocks)) /
         static_cast<double>(busy_workgroups(device));
}

std::int64_t resident_clusters(const DeviceInfo& device, int blocks, int of_unit) {
  return std::max<std::int64_t>(1, units_of_clusters(device, blocks) * of_unit / blocks);
}

std::array<std::uint32_t, 3> clustered_grid(const DeviceInfo& device, const KernelSource& kernel,
                                            std::int64_t count, int blocks, int slices) {
  auto extents = grid(device, kernel, static_cast<std::uint64_t>(count), slices);
  extents[0] *= static_cast<std::uint32_t>(blocks);
  return extents;
}

}  // namespace greta::kernels
