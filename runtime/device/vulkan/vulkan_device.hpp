#pragma once

#include <memory>

#include "runtime/device/compile/kernel_cache.hpp"
#include "runtime/device/counter_reader.hpp"
#include "runtime/device/vulkan/event.hpp"
#include "runtime/device/vulkan/memory.hpp"
#include "runtime/device/vulkan/stream.hpp"

namespace greta::device::vulkan {

class VulkanDevice final : public Device, public HardwareCounters {
 public:
  VulkanDevice(std::shared_ptr<Context> context, std::filesystem::path cache_directory);

  const DeviceInfo& info() const override { return context_->info(); }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, Memory memory) override;
  MemoryStatistics memory() const override;
  void trim() override;
  Result<void> upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) override;
  Result<void> download_all(std::span<const Download> parts) override;
  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) override;
  Result<std::unique_ptr<Kernel>> load(const KernelSource& source,
                                       std::span<const std::byte> code_object) override;
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::unique_ptr<Graph>> create_graph(
      const std::function<Result<void>(Stream&)>& record_work) override;
  Result<double> elapsed_us(const Event& start, const Event& stop) override;
  Result<std::unique_ptr<CounterReader>> open_counters() override;

 private:
  /// Returns the staging buffer of uploads and downloads.
  VulkanBuffer& staging();
  VulkanStream& transfers();
  /// Runs the recorded copies, and waits for them. After a failure, discards them.
  Result<void> finish_transfers(Result<void> recorded);

  std::shared_ptr<Context> context_;
  std::shared_ptr<MemoryHeap> device_heap_;
  std::shared_ptr<MemoryHeap> staging_heap_;
  std::shared_ptr<QueryAllocator> queries_;
  KernelCache cache_;
  // These are created on first use.
  std::unique_ptr<VulkanBuffer> staging_;
  std::unique_ptr<VulkanStream> transfers_;
};

}  // namespace greta::device::vulkan
