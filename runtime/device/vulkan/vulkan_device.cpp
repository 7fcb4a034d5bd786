#include "runtime/device/vulkan/vulkan_device.hpp"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/device/clock.hpp"
#include "runtime/device/staged_downloads.hpp"
#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/graph.hpp"
#include "runtime/device/vulkan/performance_query.hpp"

namespace greta::device::vulkan {

namespace {
constexpr std::size_t staging_bytes = std::size_t{16} << 20;

/// Returns null for a compile-only device, which has no memory.
std::shared_ptr<MemoryHeap> make_heap(const std::shared_ptr<Context>& context, Memory memory) {
  if (context->physical().compile_only) return nullptr;
  return std::make_shared<MemoryHeap>(context, memory);
}
}  // namespace

VulkanDevice::VulkanDevice(std::shared_ptr<Context> context, std::filesystem::path cache_directory)
    : context_(std::move(context)),
      device_heap_(make_heap(context_, Memory::device)),
      staging_heap_(make_heap(context_, Memory::staging)),
      queries_(std::make_shared<QueryAllocator>(context_)),
      cache_(std::move(cache_directory)) {}

Result<std::unique_ptr<Buffer>> VulkanDevice::allocate(std::size_t bytes, Memory memory) {
  return executing(*context_, [&]() -> Result<std::unique_ptr<Buffer>> {
    const auto& heap = memory == Memory::device ? device_heap_ : staging_heap_;
    return std::unique_ptr<Buffer>(vulkan::allocate(context_, heap, bytes));
  });
}

MemoryStatistics VulkanDevice::memory() const {
  return device_heap_ ? device_heap_->pool().statistics() : MemoryStatistics{};
}

void VulkanDevice::trim() {
  if (context_->lost()) return;
  staging_.reset();
  for (const auto& heap : {device_heap_, staging_heap_}) {
    if (heap) heap->pool().trim();
  }
}

VulkanBuffer& VulkanDevice::staging() {
  if (!staging_) staging_ = vulkan::allocate(context_, staging_heap_, staging_bytes);
  return *staging_;
}

VulkanStream& VulkanDevice::transfers() {
  if (!transfers_) transfers_ = std::make_unique<VulkanStream>(context_);
  return *transfers_;
}

Result<void> VulkanDevice::finish_transfers(Result<void> recorded) {
  auto done = std::move(recorded);
  if (done) done = transfers().synchronize(context_->transfer_deadline());
  if (!done) transfers().discard();
  return done;
}

Result<void> VulkanDevice::upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) {
  return guarded(*context_, [&]() -> Result<void> {
    checked_range(*context_, to, offset, from.size());
    const telemetry::Span span("device.upload");
    telemetry::count("device.uploaded_bytes", from.size());
    if (to.host() != nullptr) {
      std::copy(from.begin(), from.end(), to.host() + offset);
      return {};
    }
    while (!from.empty()) {
      const std::size_t bytes = std::min(from.size(), staging_bytes);
      std::copy_n(from.begin(), bytes, staging().host());
      auto recorded = transfers().copy(to, offset, staging(), 0, bytes);
      if (auto done = finish_transfers(std::move(recorded)); !done) return done;
      offset += bytes;
      from = from.subspan(bytes);
    }
    return {};
  });
}

Result<void> VulkanDevice::download_all(std::span<const Download> parts) {
  return guarded(*context_, [&]() -> Result<void> {
    const telemetry::Span span("device.download");
    std::vector<Download> staged;
    for (const Download& part : parts) {
      const VulkanBuffer& origin =
          checked_range(*context_, *part.from, part.offset, part.to.size());
      telemetry::count("device.downloaded_bytes", part.to.size());
      if (origin.host_cached()) {  // for uncached memory, the copy on the device is faster
        std::copy_n(origin.host() + part.offset, part.to.size(), part.to.begin());
      } else if (!part.to.empty()) {
        staged.push_back(part);
      }
    }
    if (staged.empty()) return {};
    const auto copy = [&](const Download& part, std::size_t first, std::size_t bytes,
                          std::size_t at) -> Result<void> {
      auto recorded = transfers().copy(staging(), at, *part.from, part.offset + first, bytes);
      return recorded ? recorded : finish_transfers(std::move(recorded));
    };
    const auto wait = [&] { return finish_transfers({}); };
    return StagedDownloads(staging().host(), staging_bytes).run(staged, copy, wait);
  });
}

Result<std::unique_ptr<Kernel>> VulkanDevice::compile(const KernelSource& source) {
  const StallWatch compiling(StallWatch::unlimited);
  return guarded(*context_, [&]() -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(vulkan::compile(context_, cache_, source));
  });
}

Result<std::unique_ptr<Kernel>> VulkanDevice::load(const KernelSource& source,
                                                   std::span<const std::byte> code_object) {
  const StallWatch compiling(StallWatch::unlimited);
  return guarded(*context_, [&]() -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(vulkan::load(context_, source, code_object));
  });
}

Result<std::unique_ptr<Stream>> VulkanDevice::create_stream() {
  return executing(*context_, [&]() -> Result<std::unique_ptr<Stream>> {
    return std::unique_ptr<Stream>(std::make_unique<VulkanStream>(context_));
  });
}

Result<std::unique_ptr<Event>> VulkanDevice::create_event() {
  return executing(*context_, [&]() -> Result<std::unique_ptr<Event>> {
    return std::unique_ptr<Event>(std::make_unique<VulkanEvent>(context_, queries_->acquire()));
  });
}

Result<std::unique_ptr<Graph>> VulkanDevice::create_graph(
    const std::function<Result<void>(Stream&)>& record_work) {
  return executing(*context_, [&]() -> Result<std::unique_ptr<Graph>> {
    return std::unique_ptr<Graph>(record_graph(context_, record_work));
  });
}

Result<double> VulkanDevice::elapsed_us(const Event& start, const Event& stop) {
  return guarded(*context_, [&]() -> Result<double> {
    const std::uint64_t ticks =
        ticks_between(checked_event(*context_, start).ticks(),
                      checked_event(*context_, stop).ticks(), context_->physical().timestamp_bits);
    return static_cast<double>(ticks) * context_->info().timestamp_period_ns / 1000;
  });
}

Result<std::unique_ptr<CounterReader>> VulkanDevice::open_counters() {
  return guarded(*context_, [&]() -> Result<std::unique_ptr<CounterReader>> {
    return open_performance_queries(context_);
  });
}

}  // namespace greta::device::vulkan
