#include "runtime/device/vulkan/features.hpp"

#include <utility>

#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::device::vulkan {

namespace {

/// Copies the listed members. All others stay off.
template <typename Structure>
void keep(Structure& to, const Structure& from,
          std::initializer_list<VkBool32 Structure::*> members) {
  for (const auto member : members) to.*member = from.*member;
}

/// The features of a device, as one chain. Structures of absent extensions are left out.
struct Query {
  VkPhysicalDevicePipelineExecutablePropertiesFeaturesKHR executables{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PIPELINE_EXECUTABLE_PROPERTIES_FEATURES_KHR};
  VkPhysicalDeviceCooperativeMatrixFeaturesNV nv_matrix{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV};
  VkPhysicalDeviceCooperativeMatrixFeaturesKHR khr_matrix{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR};
  VkPhysicalDeviceShaderBfloat16FeaturesKHR bf16{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR};
  VkPhysicalDevicePerformanceQueryFeaturesKHR performance{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR};
  VkPhysicalDeviceVulkan13Features v13{.sType =
                                           VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES};
  VkPhysicalDeviceVulkan12Features v12{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES, .pNext = &v13};
  VkPhysicalDeviceVulkan11Features v11{
      .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_1_FEATURES, .pNext = &v12};
  VkPhysicalDeviceFeatures2 core{.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
                                 .pNext = &v11};

  Query(VkPhysicalDevice device, const std::set<std::string>& extensions) {
    const auto chain = [&](const char* extension, auto& structure) {
      if (!extensions.contains(extension)) return;
      structure.pNext = v13.pNext;
      v13.pNext = &structure;
    };
    chain(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, executables);
    chain(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME, nv_matrix);
    chain(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, khr_matrix);
    chain(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, bf16);
    chain(VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME, performance);
    vkGetPhysicalDeviceFeatures2(device, &core);
  }
  Query(const Query&) = delete;
  Query& operator=(const Query&) = delete;
};

}  // namespace

template <typename Structure>
void Features::enable(const char* extension, Structure& structure) {
  extensions_.push_back(extension);
  structure.pNext = v13_.pNext;
  v13_.pNext = &structure;
}

Features::Features(VkPhysicalDevice device, const std::set<std::string>& extensions,
                   bool counters) {
  const Query query(device, extensions);
  core_.sType = query.core.sType;
  v11_.sType = query.v11.sType;
  v12_.sType = query.v12.sType;
  v13_.sType = query.v13.sType;
  core_.pNext = &v11_;
  v11_.pNext = &v12_;
  v12_.pNext = &v13_;

  using Core = VkPhysicalDeviceFeatures;
  keep(core_.features, query.core.features,
       {&Core::shaderInt16, &Core::shaderInt64, &Core::shaderFloat64});
  using V11 = VkPhysicalDeviceVulkan11Features;
  keep(v11_, query.v11,
       {&V11::storageBuffer16BitAccess, &V11::uniformAndStorageBuffer16BitAccess,
        &V11::storagePushConstant16, &V11::variablePointers, &V11::variablePointersStorageBuffer});
  using V12 = VkPhysicalDeviceVulkan12Features;
  keep(v12_, query.v12,
       {&V12::shaderFloat16, &V12::shaderInt8, &V12::storageBuffer8BitAccess,
        &V12::uniformAndStorageBuffer8BitAccess, &V12::storagePushConstant8,
        &V12::scalarBlockLayout, &V12::bufferDeviceAddress, &V12::timelineSemaphore,
        &V12::hostQueryReset, &V12::vulkanMemoryModel, &V12::vulkanMemoryModelDeviceScope,
        &V12::shaderSubgroupExtendedTypes, &V12::subgroupBroadcastDynamicId});
  using V13 = VkPhysicalDeviceVulkan13Features;
  keep(v13_, query.v13,
       {&V13::synchronization2, &V13::maintenance4, &V13::subgroupSizeControl,
        &V13::computeFullSubgroups, &V13::shaderIntegerDotProduct});

  if (query.executables.pipelineExecutableInfo != VK_FALSE) {
    executables_.sType = query.executables.sType;
    executables_.pipelineExecutableInfo = VK_TRUE;
    enable(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME, executables_);
  }
  performance_queries_ = query.performance.performanceCounterQueryPools != VK_FALSE;
  if (counters && performance_queries_) {
    performance_.sType = query.performance.sType;
    performance_.performanceCounterQueryPools = VK_TRUE;
    enable(VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME, performance_);
  }
  enable_matrices(query.nv_matrix.cooperativeMatrix != VK_FALSE,
                  query.khr_matrix.cooperativeMatrix != VK_FALSE,
                  query.bf16.shaderBFloat16CooperativeMatrix != VK_FALSE);
}

void Features::enable_matrices(bool nv, bool khr, bool bf16) {
  // glslang declares Vulkan's memory model in modules with cooperative matrices.
  if (v12_.vulkanMemoryModel == VK_FALSE || v12_.vulkanMemoryModelDeviceScope == VK_FALSE ||
      v12_.shaderFloat16 == VK_FALSE) {
    return;
  }
  if (khr) {
    khr_matrix_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR;
    khr_matrix_.cooperativeMatrix = VK_TRUE;
    enable(VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME, khr_matrix_);
    if (!bf16) return;
    bf16_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR;
    bf16_.shaderBFloat16Type = bf16_.shaderBFloat16CooperativeMatrix = VK_TRUE;
    enable(VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME, bf16_);
  } else if (nv) {
    nv_matrix_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_NV;
    nv_matrix_.cooperativeMatrix = VK_TRUE;
    enable(VK_NV_COOPERATIVE_MATRIX_EXTENSION_NAME, nv_matrix_);
  }
}

CooperativeMatrix Features::cooperative_matrix() const {
  if (khr_matrix_.cooperativeMatrix != VK_FALSE) return CooperativeMatrix::khr;
  return nv_matrix_.cooperativeMatrix != VK_FALSE ? CooperativeMatrix::nv : CooperativeMatrix::none;
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

}  // namespace greta::device::vulkan
