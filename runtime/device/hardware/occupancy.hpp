#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "runtime/device/device.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::device {

/// The number of workgroups and waves of a kernel that are resident on a compute unit. On RDNA,
/// "unit" means a workgroup processor, whose two compute units share each workgroup unless a kernel
/// is compiled otherwise. On NVIDIA, "unit" means a multiprocessor, and "SIMD" means one of its
/// four partitions.
struct Occupancy {
  std::uint32_t groups = 0;     ///< resident workgroups per unit; 0: not even one fits
  double waves = 0;             ///< resident waves per SIMD
  std::uint32_t max_waves = 0;  ///< limit per SIMD
  /// What limits the number of groups: "registers", "scalar registers", "shared memory" or
  /// "threads" (the number of threads or of workgroups).
  std::string_view limit;
  /// The number of waves per SIMD that vector registers alone would allow, ignoring whole
  /// workgroups. Scalar registers and shared memory have the same below. LLVM calls the least of
  /// the three occupancy.
  std::uint32_t register_waves = 0;
  std::uint32_t scalar_register_waves = 0;
  std::uint32_t shared_memory_waves = 0;
};

/// Computes the occupancy of a kernel with workgroups of `threads` threads. Returns nothing for
/// devices whose unit_* limits are unknown, and for architectures other than gfx* and sm_*.
/// Sources: AMD's instruction set manuals and LLVM's AMDGPU backend (allocation granularity), CUDA
/// C++ Programming Guide, "Technical specifications per compute capability", and CUDA's occupancy
/// calculator.
std::optional<Occupancy> occupancy(const DeviceInfo& device, const KernelStatistics& kernel,
                                   std::uint32_t threads);

}  // namespace greta::device
