#include "runtime/device/vulkan/cooperative_matrix.hpp"

#include <algorithm>

namespace greta::device::vulkan {

namespace {

/// Returns the properties that the device lists. The function must come from the device's own
/// instance and may be called only if the device has the extension. Otherwise the loader returns a
/// function that can't be called.
template <typename Properties, typename Function>
std::vector<Properties> list(VkInstance instance, VkPhysicalDevice device, VkStructureType type,
                             const char* name) {
  const auto get = reinterpret_cast<Function>(vkGetInstanceProcAddr(instance, name));
  std::uint32_t count = 0;
  check(get(device, &count, nullptr), name);
  Properties empty{};
  empty.sType = type;
  std::vector<Properties> properties(count, empty);
  check(get(device, &count, properties.data()), name);
  return properties;
}

void add(std::vector<MatrixOperation>& operations, MatrixOperation operation) {
  if (std::find(operations.begin(), operations.end(), operation) == operations.end()) {
    operations.push_back(std::move(operation));
  }
}

}  // namespace

std::vector<MatrixOperation> usable(const std::vector<VkCooperativeMatrixPropertiesNV>& listed) {
  std::vector<MatrixOperation> operations;
  for (const auto& p : listed) {
    if (p.scope != VK_SCOPE_SUBGROUP_NV) continue;
    if (p.AType != VK_COMPONENT_TYPE_FLOAT16_NV || p.BType != p.AType) continue;
    if (p.CType != VK_COMPONENT_TYPE_FLOAT32_NV || p.DType != p.CType) continue;
    add(operations, {DType::f16, DType::f32, p.MSize, p.NSize, p.KSize});
  }
  return operations;
}

std::vector<MatrixOperation> usable(const std::vector<VkCooperativeMatrixPropertiesKHR>& listed,
                                    bool bf16) {
  std::vector<MatrixOperation> operations;
  for (const auto& p : listed) {
    if (p.scope != VK_SCOPE_SUBGROUP_KHR || p.saturatingAccumulation != VK_FALSE) continue;
    if (p.CType != VK_COMPONENT_TYPE_FLOAT32_KHR || p.ResultType != p.CType) continue;
    if (p.BType != p.AType) continue;
    if (p.AType == VK_COMPONENT_TYPE_FLOAT16_KHR) {
      add(operations, {DType::f16, DType::f32, p.MSize, p.NSize, p.KSize});
    } else if (p.AType == VK_COMPONENT_TYPE_BFLOAT16_KHR && bf16) {
      add(operations, {DType::bf16, DType::f32, p.MSize, p.NSize, p.KSize});
    }
  }
  return operations;
}

std::vector<MatrixOperation> emulated_operations() {
  return {{DType::f16, DType::f32, 16, 16, 16},
          {DType::f16, DType::f32, 16, 8, 16},
          {DType::bf16, DType::f32, 8, 16, 16},
          {DType::bf16, DType::f32, 16, 8, 8}};
}

std::string matrix_macro(CooperativeMatrix extension) {
  switch (extension) {
    case CooperativeMatrix::none:
      return "";
    case CooperativeMatrix::nv:
      return "GRETA_MATRIX_NV";
    case CooperativeMatrix::khr:
      return "GRETA_MATRIX_KHR";
    case CooperativeMatrix::emulated:
      return "GRETA_MATRIX_EMULATED";
  }
  return "";
}

std::vector<MatrixOperation> matrix_operations(VkInstance instance, VkPhysicalDevice device,
                                               CooperativeMatrix extension, bool bf16) {
  switch (extension) {
    case CooperativeMatrix::none:
      return {};
    case CooperativeMatrix::nv:
      return usable(list<VkCooperativeMatrixPropertiesNV,
                         PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesNV>(
          instance, device, VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_NV,
          "vkGetPhysicalDeviceCooperativeMatrixPropertiesNV"));
    case CooperativeMatrix::khr:
      return usable(list<VkCooperativeMatrixPropertiesKHR,
                         PFN_vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR>(
                        instance, device, VK_STRUCTURE_TYPE_COOPERATIVE_MATRIX_PROPERTIES_KHR,
                        "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"),
                    bf16);
    case CooperativeMatrix::emulated:
      return emulated_operations();
  }
  return {};
}

}  // namespace greta::device::vulkan
