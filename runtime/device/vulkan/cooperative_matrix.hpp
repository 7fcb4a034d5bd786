#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "runtime/device/device_info.hpp"
#include "runtime/device/vulkan/vulkan.hpp"

// Definitions that older Vulkan headers lack (Debian 12 has 1.3.239), limited to those that GRETA
// uses. Source: the Vulkan specification's registry, vk.xml.
#ifndef VK_KHR_cooperative_matrix
#define VK_KHR_COOPERATIVE_MATRIX_EXTENSION_NAME "VK_KHR_cooperative_matrix"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_COOPERATIVE_MATRIX_FEATURES_KHR =
    static_cast<VkStructureType>(1000506000);
constexpr auto VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR =
    static_cast<VkStructureType>(1000506001);
enum VkComponentTypeKHR : std::int32_t {
  VK_COMPONENT_TYPE_FLOAT16_KHR = 0,
  VK_COMPONENT_TYPE_FLOAT32_KHR = 1,
};
enum VkScopeKHR : std::int32_t { VK_SCOPE_SUBGROUP_KHR = 3 };
struct VkPhysicalDeviceCooperativeMatrixFeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 cooperativeMatrix;
  VkBool32 cooperativeMatrixRobustBufferAccess;
};
struct VkCooperativeMatrixPropertiesKHR {
  VkStructureType sType;
  void* pNext;
  std::uint32_t MSize, NSize, KSize;
  VkComponentTypeKHR AType, BType, CType, ResultType;
  VkBool32 saturatingAccumulation;
  VkScopeKHR scope;
};
using PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR =
    VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, VkCooperativeMatrixPropertiesKHR*);
#endif
#ifndef VK_KHR_shader_bfloat16
#define VK_KHR_SHADER_BFLOAT16_EXTENSION_NAME "VK_KHR_shader_bfloat16"
constexpr auto VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_BFLOAT16_FEATURES_KHR =
    static_cast<VkStructureType>(1000141000);
constexpr auto VK_COMPONENT_TYPE_BFLOAT16_KHR = static_cast<VkComponentTypeKHR>(1000141000);
struct VkPhysicalDeviceShaderBfloat16FeaturesKHR {
  VkStructureType sType;
  void* pNext;
  VkBool32 shaderBFloat16Type;
  VkBool32 shaderBFloat16DotProduct;
  VkBool32 shaderBFloat16CooperativeMatrix;
};
#endif

namespace greta::device::vulkan {

/// The extension that gives kernels access to a device's matrix cores. With `emulated` there is
/// none, and kernels compute in plain arithmetic what matrix cores would.
enum class CooperativeMatrix { none, nv, khr, emulated };

/// Returns the macro that tells kernels which extension is used (common/cooperative_matrix.glsl).
/// It is empty for `none`.
std::string matrix_macro(CooperativeMatrix extension);

/// Returns the usable ones of the operations that a device lists: those of subgroup scope with f32
/// accumulators, and with f16 inputs, or bf16 inputs if `bf16` is set.
std::vector<MatrixOperation> usable(const std::vector<VkCooperativeMatrixPropertiesNV>& listed);
std::vector<MatrixOperation> usable(const std::vector<VkCooperativeMatrixPropertiesKHR>& listed,
                                    bool bf16);

/// Returns the operations of emulated matrices. They have the extents of NVIDIA's with f16, and
/// with bf16 others, among them Intel's.
std::vector<MatrixOperation> emulated_operations();

/// Does the same for a device and its extension. Throws Refusal.
std::vector<MatrixOperation> matrix_operations(VkInstance instance, VkPhysicalDevice device,
                                               CooperativeMatrix extension, bool bf16);

}  // namespace greta::device::vulkan
