#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "runtime/device/device_info.hpp"
#include "runtime/device/vulkan/vulkan.hpp"

namespace greta::device::vulkan {

/// The most bytes of push constants that GRETA uses: what launches have room for.
constexpr std::uint32_t most_push_bytes = 256;

/// A device as its driver describes it, before it is opened.
struct PhysicalDevice {
  VkPhysicalDevice handle = VK_NULL_HANDLE;
  DeviceInfo info;
  bool usable = false;
  std::string reason;         ///< why it is not usable, or a remark
  bool compile_only = false;  ///< not usable, but it compiles: Mesa's null hardware

  std::set<std::string> extensions;
  VkPhysicalDeviceMemoryProperties memory{};
  std::uint32_t queue_family = 0;             ///< of the compute queue
  std::uint32_t timestamp_bits = 0;           ///< valid bits of a timestamp on that queue
  std::uint32_t max_workgroup_subgroups = 0;  ///< with a required subgroup size
  bool full_subgroups = false;                ///< can be required
  bool statistics = false;                    ///< the driver tells what a kernel needs
  std::string matrix_macro;                   ///< of CooperativeMatrix; empty without
};

PhysicalDevice describe(VkInstance instance, VkPhysicalDevice device, int index);

}  // namespace greta::device::vulkan
