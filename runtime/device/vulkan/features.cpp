#include "runtime/device/vulkan/features.hpp"

#include <utility>

namespace greta::vulkan {

namespace {

/// Copies the listed members; all others stay off.
template <typename Structure>
void keep(Structure& to, const Structure& from,
          std::initializer_list<VkBool32 Structure::*> members) {
  for (const auto member : members) to.*member = from.*member;
}

}  // namespace

Features::Features(VkPhysicalDevice device, const std::set<std::string>& extensions) {
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  VkPhysicalDeviceVulkan13Features v13{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13};
  VkPhysicalDeviceVulkan11Features v11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
  VkPhysicalDeviceFeatures2 core{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                 .pNext = &v11};
  const bool has_executables =
      extensions.contains(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  if (has_executables) v13.pNext = &executables;
  vkGetPhysicalDeviceFeatures2(device, &core);

  core_.sType = core.sType;
  v11_.sType = v11.sType;
  v12_.sType = v12.sType;
  v13_.sType = v13.sType;
  executables_.sType = executables.sType;
  core_.pNext = &v11_;
  v11_.pNext = &v12_;
  v12_.pNext = &v13_;
  if (has_executables) {
    v13_.pNext = &executables_;
    extensions_.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
  }

  using Core = VkPhysicalDeviceFeatures;
  keep(core_.features, core.features,
       {&Core::shaderInt16, &Core::shaderInt64, &Core::shaderFloat64});
  using V11 = VkPhysicalDeviceVulkan11Features;
  keep(v11_, v11,
       {&V11::storageBuffer16BitAccess, &V11::uniformAndStorageBuffer16BitAccess,
        &V11::storagePushConstant16, &V11::variablePointers, &V11::variablePointersStorageBuffer});
  using V12 = VkPhysicalDeviceVulkan12Features;
  keep(v12_, v12,
       {&V12::shaderFloat16, &V12::shaderInt8, &V12::storageBuffer8BitAccess,
        &V12::uniformAndStorageBuffer8BitAccess, &V12::storagePushConstant8,
        &V12::scalarBlockLayout, &V12::bufferDeviceAddress, &V12::timelineSemaphore,
        &V12::hostQueryReset, &V12::vulkanMemoryModel, &V12::vulkanMemoryModelDeviceScope,
        &V12::shaderSubgroupExtendedTypes, &V12::subgroupBroadcastDynamicId});
  using V13 = VkPhysicalDeviceVulkan13Features;
  keep(v13_, v13,
       {&V13::synchronization2, &V13::maintenance4, &V13::subgroupSizeControl,
        &V13::computeFullSubgroups, &V13::shaderIntegerDotProduct});
  executables_.pipelineExecutableInfo = executables.pipelineExecutableInfo;
}

std::string Features::missing() const {
  const std::pair<const char*, VkBool32> required[] = {
      {"bufferDeviceAddress", v12_.bufferDeviceAddress},
      {"timelineSemaphore", v12_.timelineSemaphore},
      {"hostQueryReset", v12_.hostQueryReset},
      {"scalarBlockLayout", v12_.scalarBlockLayout},
      {"synchronization2", v13_.synchronization2},
      {"maintenance4", v13_.maintenance4},
      {"shaderInt64", core_.features.shaderInt64},
  };
  std::string names;
  for (const auto& [name, present] : required) {
    if (present == VK_FALSE) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

}  // namespace greta::vulkan
