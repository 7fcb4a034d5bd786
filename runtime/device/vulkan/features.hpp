#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/device/vulkan/vulkan.hpp"

namespace greta::vulkan {

/// The features of a device that GRETA uses, as the chain of structures that Vulkan wants.
class Features {
 public:
  /// What the device has of the features GRETA knows.
  Features(VkPhysicalDevice device, const std::set<std::string>& extensions);
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  /// Names of features that GRETA can't do without and the device lacks, or an empty string.
  std::string missing() const;
  /// The chain for VkDeviceCreateInfo::pNext.
  const VkPhysicalDeviceFeatures2* chain() const { return &core_; }
  /// Extensions to enable along with the chain.
  const std::vector<const char*>& extensions() const { return extensions_; }

  bool f16_arithmetic() const { return v12_.shaderFloat16 != VK_FALSE; }
  bool f16_storage() const { return v11_.storageBuffer16BitAccess != VK_FALSE; }
  bool subgroup_size_control() const { return v13_.subgroupSizeControl != VK_FALSE; }
  bool full_subgroups() const { return v13_.computeFullSubgroups != VK_FALSE; }
  bool statistics() const { return executables_.pipelineExecutableInfo != VK_FALSE; }

 private:
  VkPhysicalDeviceFeatures2 core_{};
  VkPhysicalDeviceVulkan11Features v11_{};
  VkPhysicalDeviceVulkan12Features v12_{};
  VkPhysicalDeviceVulkan13Features v13_{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables_{};
  std::vector<const char*> extensions_;
};

}  // namespace greta::vulkan
