#pragma once

#include <set>
#include <string>
#include <vector>

#include "runtime/device/vulkan/cooperative_matrix.hpp"

namespace greta::device::vulkan {

/// The features of a device that GRETA uses, as the chain of structures that Vulkan expects.
class Features {
 public:
  /// Queries which of the features that GRETA uses the device supports. Performance queries are
  /// enabled only for `counters`, because they can cost time in all of a process.
  Features(VkPhysicalDevice device, const std::set<std::string>& extensions, bool counters = false);
  Features(const Features&) = delete;
  Features& operator=(const Features&) = delete;

  /// Returns the names of required features that the device lacks, or an empty string.
  std::string missing() const;
  /// Returns the chain for VkDeviceCreateInfo::pNext.
  const VkPhysicalDeviceFeatures2* chain() const { return &core_; }
  /// Returns the extensions that must be enabled along with the chain.
  const std::vector<const char*>& extensions() const { return extensions_; }

  bool f16_arithmetic() const { return v12_.shaderFloat16 != VK_FALSE; }
  bool f16_storage() const { return v11_.storageBuffer16BitAccess != VK_FALSE; }
  bool subgroup_size_control() const { return v13_.subgroupSizeControl != VK_FALSE; }
  bool full_subgroups() const { return v13_.computeFullSubgroups != VK_FALSE; }
  /// Whether the driver supports performance queries, enabled or not.
  bool performance_queries() const { return performance_queries_; }
  bool statistics() const { return executables_.pipelineExecutableInfo != VK_FALSE; }
  CooperativeMatrix cooperative_matrix() const;
  bool bf16_matrices() const { return bf16_.shaderBFloat16CooperativeMatrix != VK_FALSE; }

 private:
  /// Adds an extension's structure to the chain.
  template <typename Structure>
  void enable(const char* extension, Structure& structure);
  /// Enables one of the device's extensions for cooperative matrices, if it has any.
  void enable_matrices(bool nv, bool khr, bool bf16);

  VkPhysicalDeviceFeatures2 core_{};
  VkPhysicalDeviceVulkan11Features v11_{};
  VkPhysicalDeviceVulkan12Features v12_{};
  VkPhysicalDeviceVulkan13Features v13_{};
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables_{};
  VkPhysicalDeviceCooperativeMatrixFeaturesNV nv_matrix_{};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR khr_matrix_{};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16_{};
  VkPhysicalDevicePerformanceQueryFeaturesKHR performance_{};
  bool performance_queries_ = false;
  std::vector<const char*> extensions_;
};

}  // namespace greta::device::vulkan
