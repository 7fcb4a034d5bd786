#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device/device.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::device {

/// How much of a kernel fits on a compute unit at once. On RDNA the unit is a workgroup processor,
/// both of whose compute units share in a workgroup unless a kernel is compiled otherwise; on
/// NVIDIA a multiprocessor, and a SIMD is one of its four partitions.
struct Occupancy {
  std::uint32_t groups = 0;     ///< workgroups on a unit; 0: not even one fits
  double waves = 0;             ///< of them on each SIMD
  std::uint32_t max_waves = 0;  ///< that a SIMD holds at most
  /// What sets the number of groups: "registers", "scalar registers", "shared memory" or "threads"
  /// (their number, or that of workgroups).
  std::string_view limit;
  /// Waves on a SIMD that registers alone would allow, whole workgroups or not; scalar registers
  /// and shared memory likewise. The least of the three is what LLVM calls occupancy.
  std::uint32_t register_waves = 0;
  std::uint32_t scalar_register_waves = 0;
  std::uint32_t shared_memory_waves = 0;
};

/// The occupancy of a kernel with workgroups of `threads`. Nothing for devices whose unit_* limits
/// are not known, and for architectures whose registers are not in the table.
/// Sources: AMD's instruction set manuals and LLVM's AMDGPU backend (granules of allocation), CUDA
/// C++ Programming Guide, "Technical specifications per compute capability", and CUDA's occupancy
/// calculator.
std::optional<Occupancy> occupancy(const DeviceInfo& device, const KernelStatistics& kernel,
                                   std::uint32_t threads);

}  // namespace greta::device
