#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/vulkan/vulkan.hpp"

namespace greta::device::vulkan {

/// The maximum number of bytes of push constants that GRETA uses. Launches reserve this much room.
constexpr std::uint32_t most_push_bytes = 256;

/// A device as its driver describes it, before it is opened.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  bool usable = false;
  std::string reason;         ///< why it is not usable, or a note
  bool compile_only = false;  ///< not usable, but compiles: Mesa's null hardware

  std::set<std::string> extensions;
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t queue_family = 0;             ///< family of the compute queue
  std::uint32_t timestamp_bits = 0;           ///< valid bits of a timestamp on that queue
  std::uint32_t max_workgroup_subgroups = 0;  ///< limit with a required subgroup size
  bool full_subgroups = false;                ///< whether full subgroups can be required
  bool statistics = false;                    ///< whether the driver reports statistics of kernels
  VkDriverId driver{};                        ///< which driver this is
  bool performance_queries = false;           ///< whether the driver can count
  bool counts = false;                        ///< whether it is opened to count
  std::string matrix_macro;                   ///< see matrix_macro(); empty without matrix cores
};

/// Gives a CPU's device without cooperative matrices emulated ones.
void emulate_matrices(PhysicalDevice& device);

PhysicalDevice describe(VkInstance instance, VkPhysicalDevice device, int index);

}  // namespace greta::device::vulkan
