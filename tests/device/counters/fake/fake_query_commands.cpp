// Counting in command buffers, and the layer's other functions of devices.

#include <algorithm>
#include <set>
#include <vector>

#include "tests/device/counters/fake/fake_query_layer.hpp"

namespace greta::test::query_layer {
namespace {

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

std::map<VkQueryPool, Pool> pools;
std::map<VkCommandBuffer, Commands> commands_of;

template <typename Function>
Function below_device(Function, const char* name) {
  return reinterpret_cast<Function>(next_device(device_of_driver, name));
}
#define BELOW_DEVICE(name) below_device(PFN_##name{}, #name)

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

}  // namespace

FakeQueries& state() {
  static FakeQueries it;
  if (it.counters.empty()) {  // for programs, which can't configure it
    constexpr int bytes = VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR;
    constexpr int percent = VK_PERFORMANCE_COUNTER_UNIT_PERCENTAGE_KHR;
    constexpr int u64 = VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR;
    constexpr int f32 = VK_PERFORMANCE_COUNTER_STORAGE_FLOAT32_KHR;
    it.counters = {{"GTI Read Throughput", bytes, u64, 3072, 0},
                   {"GTI Write Throughput", bytes, u64, 1024, 0},
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

}  // namespace greta::test::query_layer
