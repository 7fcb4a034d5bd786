// What the layer says of devices, and its entry points.

#include "tests/device/counters/fake/fake_query_layer.hpp"

#include <algorithm>
#include <cstring>

#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))

using namespace greta::test::query_layer;
using State = greta::test::FakeQueries;

namespace {

constexpr const char* extension = VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME;

PFN_vkGetInstanceProcAddr next_instance = nullptr;
VkInstance instance_of_driver = VK_NULL_HANDLE;
/// Functions below the layer. The loader gives them only while the instance is created.
struct Below {
  PFN_vkEnumerateDeviceExtensionProperties extensions = nullptr;
  PFN_vkGetPhysicalDeviceFeatures2 features = nullptr;
  PFN_vkGetPhysicalDeviceProperties2 properties = nullptr;
};
Below below;

template <typename Function>
void learn(Function& function, const char* name) {
  function = reinterpret_cast<Function>(next_instance(instance_of_driver, name));
}
VKAPI_ATTR VkResult VKAPI_CALL create_instance(const VkInstanceCreateInfo* info,
                                               const VkAllocationCallbacks* allocator,
                                               VkInstance* instance) {
  auto* link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link->sType != VK_STRUCTURE_TYPE_LOADER_INSTANCE_CREATE_INFO ||
         link->function != VK_LAYER_LINK_INFO) {
    link = static_cast<VkLayerInstanceCreateInfo*>(const_cast<void*>(link->pNext));
  }
  next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateInstance>(next_instance(nullptr, "vkCreateInstance"));
  const VkResult result = create(info, allocator, instance);
  if (result != VK_SUCCESS) return result;
  instance_of_driver = *instance;
  learn(below.extensions, "vkEnumerateDeviceExtensionProperties");
  learn(below.features, "vkGetPhysicalDeviceFeatures2");
  learn(below.properties, "vkGetPhysicalDeviceProperties2");
  return result;
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_extensions(VkPhysicalDevice device, const char* layer,
                                                    std::uint32_t* count,
                                                    VkExtensionProperties* properties) {
  const auto call = below.extensions;
  if (layer != nullptr || !state().extension) return call(device, layer, count, properties);
  std::uint32_t own = 0;
  call(device, nullptr, &own, nullptr);
  std::vector<VkExtensionProperties> all(own);
  call(device, nullptr, &own, all.data());
  VkExtensionProperties added{};
  std::strcpy(added.extensionName, extension);
  added.specVersion = 1;
  all.push_back(added);
  if (properties != nullptr) {
    *count = std::min(*count, static_cast<std::uint32_t>(all.size()));
    std::copy_n(all.begin(), *count, properties);
  } else {
    *count = static_cast<std::uint32_t>(all.size());
  }
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL features(VkPhysicalDevice device, VkPhysicalDeviceFeatures2* info) {
  below.features(device, info);
  auto* const ours = find(info, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR);
  if (ours == nullptr) return;
  auto* const queries = reinterpret_cast<VkPhysicalDevicePerformanceQueryFeaturesKHR*>(ours);
  queries->performanceCounterQueryPools = state().feature ? VK_TRUE : VK_FALSE;
  queries->performanceCounterMultipleQueryPools = VK_FALSE;
}

VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice device, VkPhysicalDeviceProperties2* info) {
  below.properties(device, info);
  auto* const v12 = find(info, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES);
  if (v12 == nullptr) return;
  reinterpret_cast<VkPhysicalDeviceVulkan12Properties*>(v12)->driverID =
      static_cast<VkDriverId>(state().driver);
}

VKAPI_ATTR VkResult VKAPI_CALL enumerate_counters(VkPhysicalDevice, std::uint32_t,
                                                  std::uint32_t* count,
                                                  VkPerformanceCounterKHR* counters,
                                                  VkPerformanceCounterDescriptionKHR* texts) {
  const auto& all = state().counters;
  if (counters == nullptr && texts == nullptr) {
    *count = static_cast<std::uint32_t>(all.size());
    return VK_SUCCESS;
  }
  for (std::uint32_t i = 0; i < *count; ++i) {
    if (counters[i].sType != VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_KHR ||
        texts[i].sType != VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR) {
      misuse("a counter's structure without its type");
    }
    counters[i].unit = static_cast<VkPerformanceCounterUnitKHR>(all[i].unit);
    counters[i].scope = static_cast<VkPerformanceCounterScopeKHR>(all[i].scope);
    counters[i].storage = static_cast<VkPerformanceCounterStorageKHR>(all[i].storage);
    std::strcpy(texts[i].name, all[i].name.c_str());
  }
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL query_passes(VkPhysicalDevice,
                                        const VkQueryPoolPerformanceCreateInfoKHR* info,
                                        std::uint32_t* passes) {
  *passes = passes_of(info->counterIndexCount);
}

VKAPI_ATTR VkResult VKAPI_CALL create_device(VkPhysicalDevice physical,
                                             const VkDeviceCreateInfo* info,
                                             const VkAllocationCallbacks* allocator,
                                             VkDevice* device) {
  auto* link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(info->pNext));
  while (link->sType != VK_STRUCTURE_TYPE_LOADER_DEVICE_CREATE_INFO ||
         link->function != VK_LAYER_LINK_INFO) {
    link = static_cast<VkLayerDeviceCreateInfo*>(const_cast<void*>(link->pNext));
  }
  next_instance = link->u.pLayerInfo->pfnNextGetInstanceProcAddr;
  next_device = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
  link->u.pLayerInfo = link->u.pLayerInfo->pNext;
  // The driver knows neither the extension nor its structure.
  std::vector<const char*> names(info->ppEnabledExtensionNames,
                                 info->ppEnabledExtensionNames + info->enabledExtensionCount);
  const bool asked =
      std::erase_if(names, [](const char* name) { return std::strcmp(name, extension) == 0; }) > 0;
  VkDeviceCreateInfo without = *info;
  without.enabledExtensionCount = static_cast<std::uint32_t>(names.size());
  without.ppEnabledExtensionNames = names.data();
  constexpr auto type = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PERFORMANCE_QUERY_FEATURES_KHR;
  auto* before = reinterpret_cast<VkBaseOutStructure*>(&without);
  while (before->pNext != nullptr && before->pNext->sType != type) before = before->pNext;
  VkBaseOutStructure* const ours = before->pNext;
  if (ours != nullptr) before->pNext = ours->pNext;
  const auto create =
      reinterpret_cast<PFN_vkCreateDevice>(next_instance(instance_of_driver, "vkCreateDevice"));
  const VkResult result = create(physical, &without, allocator, device);
  if (ours != nullptr) before->pNext = ours;
  state().enabled = asked && ours != nullptr &&
                    reinterpret_cast<VkPhysicalDevicePerformanceQueryFeaturesKHR*>(ours)
                            ->performanceCounterQueryPools == VK_TRUE;
  if (result == VK_SUCCESS) device_of_driver = *device;
  return result;
}

PFN_vkVoidFunction get_instance(VkInstance instance, const char* name);
const std::map<std::string, PFN_vkVoidFunction>& of_instance() {
  static const std::map<std::string, PFN_vkVoidFunction> all{
      {"vkGetInstanceProcAddr", function(&get_instance)},
      {"vkCreateInstance", function(&create_instance)},
      {"vkCreateDevice", function(&create_device)},
      {"vkEnumerateDeviceExtensionProperties", function(&enumerate_extensions)},
      {"vkGetPhysicalDeviceFeatures2", function(&features)},
      {"vkGetPhysicalDeviceProperties2", function(&properties)},
      {"vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR",
       function(&enumerate_counters)},
      {"vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR", function(&query_passes)}};
  return all;
}

PFN_vkVoidFunction get_instance(VkInstance instance, const char* name) {
  if (const auto found = of_instance().find(name); found != of_instance().end()) {
    return found->second;
  }
  if (const auto found = of_device().find(name); found != of_device().end()) {
    return found->second;
  }
  return next_instance(instance, name);
}

}  // namespace

LAYER_EXPORT State* fake_queries() {
  return &state();
}

LAYER_EXPORT VKAPI_ATTR VkResult VKAPI_CALL
vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface* version) {
  version->loaderLayerInterfaceVersion = 2;
  version->pfnGetInstanceProcAddr = &get_instance;
  version->pfnGetDeviceProcAddr = &get_device;
  version->pfnGetPhysicalDeviceProcAddr = nullptr;
  return VK_SUCCESS;
}
