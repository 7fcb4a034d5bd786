#pragma once

// A Vulkan layer that adds VK_KHR_performance_query to a driver without it, such as lavapipe. It
// counts dispatches and workgroups in command buffers, and records what the specification forbids.

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <map>
#include <string>

#include "tests/device/counters/fake/fake_queries.hpp"

namespace greta::test::query_layer {

FakeQueries& state();
void misuse(const char* what);

inline PFN_vkGetDeviceProcAddr next_device = nullptr;  ///< of the driver
inline VkDevice device_of_driver = VK_NULL_HANDLE;

/// Finds a structure in a chain.
inline VkBaseOutStructure* find(const void* chain, VkStructureType type) {
  auto* one = static_cast<VkBaseOutStructure*>(const_cast<void*>(chain));
  while (one != nullptr && one->sType != type) one = one->pNext;
  return one;
}

/// Returns the number of passes that counters take.
inline std::uint32_t passes_of(std::size_t counters) {
  const auto each = static_cast<std::size_t>(state().counters_a_pass);
  return static_cast<std::uint32_t>((counters + each - 1) / each);
}

template <typename Function>
PFN_vkVoidFunction function(Function* of) {
  return reinterpret_cast<PFN_vkVoidFunction>(of);
}

PFN_vkVoidFunction get_device(VkDevice device, const char* name);
/// Returns the layer's functions of devices.
const std::map<std::string, PFN_vkVoidFunction>& of_device();

}  // namespace greta::test::query_layer
