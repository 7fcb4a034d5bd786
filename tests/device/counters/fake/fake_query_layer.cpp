// A Vulkan layer that adds VK_KHR_performance_query to a driver without it, such as lavapipe. It
// counts dispatches and workgroups in command buffers, and records what the specification forbids.

#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <set>

#include "tests/device/counters/fake/fake_queries.hpp"

#define LAYER_EXPORT extern "C" __attribute__((visibility("default")))
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

namespace {

using State = greta::test::FakeQueries;

State& state() {
  static State it;
  if (it.counters.empty()) {  // for programs, which can't configure it
    constexpr int bytes = VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR;
    constexpr int percent = VK_PERFORMANCE_COUNTER_UNIT_PERCENTAGE_KHR;
    constexpr int u64 = VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR;
    constexpr int f32 = VK_PERFORMANCE_COUNTER_STORAGE_FLOAT32_KHR;
    it.counters = {{"GTI Read Throughput", bytes, u64, 3145728, 0},
                   {"GTI Write Throughput", bytes, u64, 1048576, 0},
                   {"EU Thread Occupancy", percent, f32, 62.5, 0},
                   {"EU FPU0 Pipe Active", percent, f32, 93, 0},
                   {"SLM Bytes Read", bytes, u64, 0, 2048},
                   {"SLM Bytes Written", bytes, u64, 0, 1024}};
  }
  return it;
}

void misuse(const char* what) {
  state().misuse.emplace_back(what);
}

constexpr const char* extension = VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME;

struct Pool {
  std::vector<std::uint32_t> counters;
  std::vector<double> values;
  std::set<std::uint32_t> passes;  // that were submitted
  bool reset = false;
};

/// What a command buffer does.
struct Commands {
  int recorded = 0;
  VkQueryPool pool = VK_NULL_HANDLE;
  bool begun = false, ended = false;
  double dispatches = 0, groups = 0;
};

PFN_vkGetInstanceProcAddr next_instance = nullptr;
PFN_vkGetDeviceProcAddr next_device = nullptr;
VkInstance instance_of_driver = VK_NULL_HANDLE;
VkDevice device_of_driver = VK_NULL_HANDLE;
std::map<VkQueryPool, Pool> pools;
std::map<VkCommandBuffer, Commands> commands_of;

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
template <typename Function>
Function below_device(Function, const char* name) {
  return reinterpret_cast<Function>(next_device(device_of_driver, name));
}
#define BELOW_DEVICE(name) below_device(PFN_##name{}, #name)

/// Finds a structure in a chain.
VkBaseOutStructure* find(const void* chain, VkStructureType type) {
  auto* one = static_cast<VkBaseOutStructure*>(const_cast<void*>(chain));
  while (one != nullptr && one->sType != type) one = one->pNext;
  return one;
}

std::uint32_t passes_of(std::size_t counters) {
  const auto each = static_cast<std::size_t>(state().counters_a_pass);
  return static_cast<std::uint32_t>((counters + each - 1) / each);
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

VKAPI_ATTR VkResult VKAPI_CALL acquire_lock(VkDevice, const VkAcquireProfilingLockInfoKHR*) {
  if (!state().enabled) misuse("vkAcquireProfilingLockKHR without the feature");
  if (state().lock_result == 0) ++state().locks;
  return static_cast<VkResult>(state().lock_result);
}

VKAPI_ATTR void VKAPI_CALL release_lock(VkDevice) {
  --state().locks;
}

VKAPI_ATTR VkResult VKAPI_CALL create_pool(VkDevice device, const VkQueryPoolCreateInfo* info,
                                           const VkAllocationCallbacks* allocator,
                                           VkQueryPool* pool) {
  if (info->queryType != VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR) {
    return BELOW_DEVICE(vkCreateQueryPool)(device, info, allocator, pool);
  }
  if (!state().enabled) misuse("a pool of counters without the feature");
  const auto* const counters = reinterpret_cast<VkQueryPoolPerformanceCreateInfoKHR*>(
      find(info->pNext, VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR));
  static std::uint64_t last = 0x5eed0000;
  *pool = reinterpret_cast<VkQueryPool>(++last);
  Pool& made = pools[*pool];
  made.counters.assign(counters->pCounterIndices,
                       counters->pCounterIndices + counters->counterIndexCount);
  made.values.assign(made.counters.size(), 0);
  ++state().pools;
  return VK_SUCCESS;
}

VKAPI_ATTR void VKAPI_CALL destroy_pool(VkDevice device, VkQueryPool pool,
                                        const VkAllocationCallbacks* allocator) {
  if (pools.erase(pool) > 0) {
    --state().pools;
  } else {
    BELOW_DEVICE(vkDestroyQueryPool)(device, pool, allocator);
  }
}

VKAPI_ATTR void VKAPI_CALL reset_pool(VkDevice device, VkQueryPool pool, std::uint32_t first,
                                      std::uint32_t count) {
  if (!pools.contains(pool)) return BELOW_DEVICE(vkResetQueryPool)(device, pool, first, count);
  pools[pool].passes.clear();
  pools[pool].reset = true;
}

VKAPI_ATTR VkResult VKAPI_CALL results(VkDevice device, VkQueryPool pool, std::uint32_t first,
                                       std::uint32_t count, std::size_t bytes, void* data,
                                       VkDeviceSize stride, VkQueryResultFlags flags) {
  if (!pools.contains(pool)) {
    return BELOW_DEVICE(vkGetQueryPoolResults)(device, pool, first, count, bytes, data, stride,
                                               flags);
  }
  const Pool& of = pools[pool];
  if (bytes != of.counters.size() * sizeof(VkPerformanceCounterResultKHR) || stride % 8 != 0 ||
      first != 0 || count != 1) {
    misuse("vkGetQueryPoolResults with another size");
  }
  if (of.passes.size() != passes_of(of.counters.size())) return VK_NOT_READY;
  auto* const out = static_cast<VkPerformanceCounterResultKHR*>(data);
  for (std::size_t i = 0; i < of.counters.size(); ++i) {
    const double value = of.values[i];
    switch (state().counters[of.counters[i]].storage) {
      case VK_PERFORMANCE_COUNTER_STORAGE_INT32_KHR:
        out[i].int32 = static_cast<std::int32_t>(value);
        break;
      case VK_PERFORMANCE_COUNTER_STORAGE_INT64_KHR:
        out[i].int64 = static_cast<std::int64_t>(value);
        break;
      case VK_PERFORMANCE_COUNTER_STORAGE_UINT32_KHR:
        out[i].uint32 = static_cast<std::uint32_t>(value);
        break;
      case VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR:
        out[i].uint64 = static_cast<std::uint64_t>(value);
        break;
      case VK_PERFORMANCE_COUNTER_STORAGE_FLOAT32_KHR:
        out[i].float32 = static_cast<float>(value);
        break;
      default:
        out[i].float64 = value;
    }
  }
  return VK_SUCCESS;
}

VKAPI_ATTR VkResult VKAPI_CALL begin_commands(VkCommandBuffer commands,
                                              const VkCommandBufferBeginInfo* info) {
  commands_of[commands] = {};
  return BELOW_DEVICE(vkBeginCommandBuffer)(commands, info);
}

/// Notes a command.
Commands& command(VkCommandBuffer commands) {
  Commands& of = commands_of[commands];
  ++of.recorded;
  if (of.ended) misuse("a command after the end of a query of the whole command buffer");
  return of;
}

VKAPI_ATTR void VKAPI_CALL begin_query(VkCommandBuffer commands, VkQueryPool pool,
                                       std::uint32_t query, VkQueryControlFlags) {
  Commands& of = command(commands);
  if (state().locks == 0) misuse("vkCmdBeginQuery without the profiling lock");
  if (of.recorded != 1) misuse("vkCmdBeginQuery is not the first command");
  if (query != 0 || !pools.contains(pool) || !pools[pool].reset) {
    misuse("vkCmdBeginQuery of a query that was not reset");
  }
  of.begun = true;
  of.pool = pool;
}

VKAPI_ATTR void VKAPI_CALL end_query(VkCommandBuffer commands, VkQueryPool pool, std::uint32_t) {
  Commands& of = command(commands);
  if (!of.begun || of.pool != pool) misuse("vkCmdEndQuery of another query");
  of.ended = true;
}

VKAPI_ATTR void VKAPI_CALL dispatch(VkCommandBuffer commands, std::uint32_t x, std::uint32_t y,
                                    std::uint32_t z) {
  Commands& of = command(commands);
  ++of.dispatches;
  of.groups += double{1} * x * y * z;
  BELOW_DEVICE(vkCmdDispatch)(commands, x, y, z);
}

VKAPI_ATTR void VKAPI_CALL order(VkCommandBuffer commands, const VkDependencyInfo* info) {
  command(commands);
  BELOW_DEVICE(vkCmdPipelineBarrier2)(commands, info);
}

VKAPI_ATTR void VKAPI_CALL fill(VkCommandBuffer commands, VkBuffer buffer, VkDeviceSize offset,
                                VkDeviceSize bytes, std::uint32_t data) {
  command(commands);
  BELOW_DEVICE(vkCmdFillBuffer)(commands, buffer, offset, bytes, data);
}

void count(Commands& of, const VkPerformanceQuerySubmitInfoKHR* pass) {
  if (!of.begun) return;
  if (!of.ended) misuse("a query that does not end");
  if (state().locks == 0) misuse("a query is submitted without the profiling lock");
  Pool& pool = pools[of.pool];
  if (pass == nullptr) return misuse("a query is submitted without a pass");
  const std::uint32_t index = pass->counterPassIndex;
  if (index >= passes_of(pool.counters.size())) return misuse("a pass that there is not");
  if (!pool.passes.insert(index).second) misuse("a pass for the second time");
  ++state().passes;
  const auto each = static_cast<std::size_t>(state().counters_a_pass);
  for (std::size_t i = index * each; i < std::min((index + 1) * each, pool.counters.size()); ++i) {
    const auto& counter = state().counters[pool.counters[i]];
    pool.values[i] = counter.per_dispatch * of.dispatches + counter.per_group * of.groups;
  }
}

VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, std::uint32_t number,
                                      const VkSubmitInfo2* infos, VkFence fence) {
  std::vector<VkSubmitInfo2> all(infos, infos + number);
  for (VkSubmitInfo2& one : all) {
    const auto* const pass = reinterpret_cast<VkPerformanceQuerySubmitInfoKHR*>(
        find(one.pNext, VK_STRUCTURE_TYPE_PERFORMANCE_QUERY_SUBMIT_INFO_KHR));
    for (std::uint32_t i = 0; i < one.commandBufferInfoCount; ++i) {
      count(commands_of[one.pCommandBufferInfos[i].commandBuffer], pass);
    }
    if (pass != nullptr) one.pNext = pass->pNext;
  }
  return BELOW_DEVICE(vkQueueSubmit2)(queue, number, all.data(), fence);
}

PFN_vkVoidFunction get_instance(VkInstance instance, const char* name);
PFN_vkVoidFunction get_device(VkDevice device, const char* name);

template <typename Function>
PFN_vkVoidFunction function(Function* of) {
  return reinterpret_cast<PFN_vkVoidFunction>(of);
}

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

const std::map<std::string, PFN_vkVoidFunction>& of_device() {
  static const std::map<std::string, PFN_vkVoidFunction> all{
      {"vkGetDeviceProcAddr", function(&get_device)},
      {"vkAcquireProfilingLockKHR", function(&acquire_lock)},
      {"vkReleaseProfilingLockKHR", function(&release_lock)},
      {"vkCreateQueryPool", function(&create_pool)},
      {"vkDestroyQueryPool", function(&destroy_pool)},
      {"vkResetQueryPool", function(&reset_pool)},
      {"vkGetQueryPoolResults", function(&results)},
      {"vkBeginCommandBuffer", function(&begin_commands)},
      {"vkCmdBeginQuery", function(&begin_query)},
      {"vkCmdEndQuery", function(&end_query)},
      {"vkCmdDispatch", function(&dispatch)},
      {"vkCmdPipelineBarrier2", function(&order)},
      {"vkCmdFillBuffer", function(&fill)},
      {"vkQueueSubmit2", function(&submit)}};
  return all;
}

PFN_vkVoidFunction get_device(VkDevice device, const char* name) {
  const auto found = of_device().find(name);
  return found != of_device().end() ? found->second : next_device(device, name);
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
