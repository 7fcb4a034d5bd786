#include "runtime/device/vulkan/performance_query.hpp"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "runtime/device/counters/counted_part.hpp"
#include "runtime/device/vulkan/stream.hpp"

namespace greta::device::vulkan {
namespace {

constexpr std::uint64_t lock_timeout_ns = 10'000'000'000;

/// Returns the name by which formulas know a driver.
std::string driver_name(VkDriverId driver) {
  switch (driver) {
    case VK_DRIVER_ID_MESA_RADV:
      return "radv";
    case VK_DRIVER_ID_AMD_OPEN_SOURCE:
      return "amdvlk";
    case VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA:
      return "anv";
    case VK_DRIVER_ID_MESA_TURNIP:
      return "turnip";
    case VK_DRIVER_ID_MESA_PANVK:
      return "panvk";
    case VK_DRIVER_ID_MESA_V3DV:
      return "v3dv";
    case VK_DRIVER_ID_MESA_LLVMPIPE:
      return "llvmpipe";
    default:
      return fmt::format("driver {}", static_cast<int>(driver));
  }
}

std::string unit_text(VkPerformanceCounterUnitKHR unit) {
  switch (unit) {
    case VK_PERFORMANCE_COUNTER_UNIT_PERCENTAGE_KHR:
      return " [%]";
    case VK_PERFORMANCE_COUNTER_UNIT_NANOSECONDS_KHR:
      return " [ns]";
    case VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR:
      return " [bytes]";
    case VK_PERFORMANCE_COUNTER_UNIT_BYTES_PER_SECOND_KHR:
      return " [bytes/s]";
    case VK_PERFORMANCE_COUNTER_UNIT_KELVIN_KHR:
      return " [K]";
    case VK_PERFORMANCE_COUNTER_UNIT_WATTS_KHR:
      return " [W]";
    case VK_PERFORMANCE_COUNTER_UNIT_VOLTS_KHR:
      return " [V]";
    case VK_PERFORMANCE_COUNTER_UNIT_AMPS_KHR:
      return " [A]";
    case VK_PERFORMANCE_COUNTER_UNIT_HERTZ_KHR:
      return " [Hz]";
    case VK_PERFORMANCE_COUNTER_UNIT_CYCLES_KHR:
      return " [cycles]";
    default:
      return {};
  }
}

double value_of(const VkPerformanceCounterResultKHR& result, VkPerformanceCounterStorageKHR as) {
  switch (as) {
    case VK_PERFORMANCE_COUNTER_STORAGE_INT32_KHR:
      return result.int32;
    case VK_PERFORMANCE_COUNTER_STORAGE_INT64_KHR:
      return static_cast<double>(result.int64);
    case VK_PERFORMANCE_COUNTER_STORAGE_UINT32_KHR:
      return result.uint32;
    case VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR:
      return static_cast<double>(result.uint64);
    case VK_PERFORMANCE_COUNTER_STORAGE_FLOAT32_KHR:
      return static_cast<double>(result.float32);
    case VK_PERFORMANCE_COUNTER_STORAGE_FLOAT64_KHR:
      return result.float64;
    default:
      return std::nan("");
  }
}

struct Counter {
  std::uint32_t index = 0;
  VkPerformanceCounterStorageKHR storage{};
};

/// Returns the counters of a queue family that command buffers can begin and end, by name and unit.
std::map<std::string, Counter> counters_of(VkPhysicalDevice device, std::uint32_t family) {
  std::uint32_t count = 0;
  check(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(device, family, &count,
                                                                        nullptr, nullptr),
        "vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR");
  std::vector<VkPerformanceCounterKHR> all(count,
                                           {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_KHR});
  std::vector<VkPerformanceCounterDescriptionKHR> texts(
      count, {.sType = VK_STRUCTURE_TYPE_PERFORMANCE_COUNTER_DESCRIPTION_KHR});
  if (count > 0) {
    check(vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR(device, family, &count,
                                                                          all.data(), texts.data()),
          "vkEnumeratePhysicalDeviceQueueFamilyPerformanceQueryCountersKHR");
  }
  std::map<std::string, Counter> counters;
  std::set<std::string> ambiguous;
  for (std::uint32_t i = 0; i < count; ++i) {
    if (all[i].scope == VK_PERFORMANCE_COUNTER_SCOPE_RENDER_PASS_KHR) continue;
    const std::string name = texts[i].name + unit_text(all[i].unit);
    if (!counters.emplace(name, Counter{i, all[i].storage}).second) ambiguous.insert(name);
  }
  for (const std::string& name : ambiguous) counters.erase(name);
  return counters;
}

/// Holds the profiling lock of a device.
class ProfilingLock {
 public:
  explicit ProfilingLock(Context& context) : context_(context) {
    const VkAcquireProfilingLockInfoKHR info{
        .sType = VK_STRUCTURE_TYPE_ACQUIRE_PROFILING_LOCK_INFO_KHR, .timeout = lock_timeout_ns};
    const VkResult result = context.vk().vkAcquireProfilingLockKHR(context.handle(), &info);
    if (result == VK_TIMEOUT) {
      throw Refusal(Status::unavailable,
                    "vkAcquireProfilingLockKHR: the driver gives no access to the counters: "
                    "another process holds them, or only administrators may read them");
    }
    check(result, "vkAcquireProfilingLockKHR");
  }
  ~ProfilingLock() {
    if (!context_.lost()) context_.vk().vkReleaseProfilingLockKHR(context_.handle());
  }
  ProfilingLock(const ProfilingLock&) = delete;
  ProfilingLock& operator=(const ProfilingLock&) = delete;

 private:
  Context& context_;
};

using QueryPool = Handle<VkQueryPool, &VolkDeviceTable::vkDestroyQueryPool>;

class PerformanceQueryReader final : public CounterReader {
 public:
  PerformanceQueryReader(std::shared_ptr<Context> context, std::map<std::string, Counter> counters)
      : context_(std::move(context)),
        counters_(std::move(counters)),
        source_{"VK_KHR_performance_query of " + driver_name(context_->physical().driver),
                context_->info().architecture} {}

  const CounterSource& source() const override { return source_; }

  Result<CounterReading> read(const std::vector<std::string>& names,
                              const CountedWork& work) override {
    return guarded(*context_, [&]() -> Result<CounterReading> { return counted(names, work); });
  }

 private:
  Result<CounterReading> counted(const std::vector<std::string>& names, const CountedWork& work) {
    std::vector<std::string> wanted;
    std::vector<std::uint32_t> indices;
    for (const std::string& name : names) {
      const auto found = counters_.find(name);
      if (found == counters_.end()) continue;
      wanted.push_back(name);
      indices.push_back(found->second.index);
    }
    if (wanted.empty()) {
      throw Refusal(Status::unavailable,
                    source_.name + " has none of the counters that give figures");
    }
    const VkQueryPoolPerformanceCreateInfoKHR performance{
        .sType = VK_STRUCTURE_TYPE_QUERY_POOL_PERFORMANCE_CREATE_INFO_KHR,
        .queueFamilyIndex = context_->physical().queue_family,
        .counterIndexCount = static_cast<std::uint32_t>(indices.size()),
        .pCounterIndices = indices.data()};
    std::uint32_t passes = 0;
    vkGetPhysicalDeviceQueueFamilyPerformanceQueryPassesKHR(context_->physical().handle,
                                                            &performance, &passes);
    if (passes == 0) throw Refusal(Status::unavailable, source_.name + " needs no pass for them");
    const ProfilingLock lock(*context_);
    const VkQueryPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                       .pNext = &performance,
                                       .queryType = VK_QUERY_TYPE_PERFORMANCE_QUERY_KHR,
                                       .queryCount = 1};
    const auto pool =
        make<QueryPool, &VolkDeviceTable::vkCreateQueryPool>(context_, create, "vkCreateQueryPool");
    context_->vk().vkResetQueryPool(context_->handle(), pool.get(), 0, 1);
    for (std::uint32_t pass = 0; pass < passes; ++pass) {
      if (auto done = run_pass({pool.get(), pass}, work); !done) return done.failure();
    }
    CounterReading reading{.source = source_, .values = {}, .passes = static_cast<int>(passes)};
    add_results(pool.get(), wanted, reading);
    return reading;
  }

  static Result<void> run_pass(const VulkanStream::CountedPass& pass, const CountedWork& work) {
    auto* const stream = dynamic_cast<VulkanStream*>(work.stream);
    if (stream == nullptr) {
      throw Refusal(Status::invalid_argument, "the stream belongs to another device");
    }
    if (auto prepared = run_part(work, work.prepare); !prepared) return prepared;
    return stream->count(pass, work.record, work.deadline);
  }

  /// Adds the values that are numbers: a ratio of nothing is none.
  void add_results(VkQueryPool pool, const std::vector<std::string>& wanted,
                   CounterReading& reading) const {
    std::vector<VkPerformanceCounterResultKHR> results(wanted.size());
    const std::size_t bytes = results.size() * sizeof(VkPerformanceCounterResultKHR);
    check(context_->vk().vkGetQueryPoolResults(context_->handle(), pool, 0, 1, bytes,
                                               results.data(), bytes, 0),
          "vkGetQueryPoolResults");
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double value = value_of(results[i], counters_.at(wanted[i]).storage);
      if (std::isfinite(value)) reading.values[wanted[i]] = value;
    }
  }

  std::shared_ptr<Context> context_;
  std::map<std::string, Counter> counters_;
  CounterSource source_;
};

/// Returns which other device counts the same card.
std::string elsewhere(const DeviceInfo& info) {
  if (info.vendor == "NVIDIA") return "; as a device of hip, CUPTI counts on the same card";
  if (info.vendor == "AMD") return "; as a device of hip, rocprofiler-sdk counts on the same card";
  return {};
}

}  // namespace

void prepare_counting(PhysicalDevice& physical) {
  if (!physical.performance_queries) return;
  std::uint32_t count = 0;
  vkGetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  vkGetPhysicalDeviceQueueFamilyProperties(physical.handle, &count, families.data());
  std::size_t most = 0;
  for (std::uint32_t family = 0; family < count; ++family) {
    const auto& properties = families[family];
    if ((properties.queueFlags & VK_QUEUE_COMPUTE_BIT) == 0 || properties.queueCount == 0 ||
        properties.timestampValidBits == 0) {
      continue;
    }
    const std::size_t counters = counters_of(physical.handle, family).size();
    if (counters <= most) continue;
    most = counters;
    physical.queue_family = family;
    physical.timestamp_bits = properties.timestampValidBits;
  }
  physical.counts = most > 0;
}

std::unique_ptr<CounterReader> open_performance_queries(const std::shared_ptr<Context>& context) {
  const PhysicalDevice& physical = context->physical();
  const std::string start = physical.info.id() + " has no hardware counters: ";
  if (!physical.extensions.contains(VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME)) {
    throw Refusal(Status::unavailable,
                  fmt::format("{}its driver ({}) lacks {}{}", start, physical.info.driver,
                              VK_KHR_PERFORMANCE_QUERY_EXTENSION_NAME, elsewhere(physical.info)));
  }
  if (!physical.performance_queries) {
    throw Refusal(
        Status::unavailable,
        fmt::format("{}its driver ({}) has the feature performanceCounterQueryPools off{}", start,
                    physical.info.driver, elsewhere(physical.info)));
  }
  auto counters = counters_of(physical.handle, physical.queue_family);
  if (counters.empty()) {
    throw Refusal(Status::unavailable,
                  fmt::format("{}its driver ({}) lists none for a queue of kernels{}", start,
                              physical.info.driver, elsewhere(physical.info)));
  }
  if (!physical.counts) {
    throw Refusal(Status::unavailable,
                  physical.info.id() + " was not opened to count (OpenOptions::counters)");
  }
  return std::make_unique<PerformanceQueryReader>(context, std::move(counters));
}

}  // namespace greta::device::vulkan
