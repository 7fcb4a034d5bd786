#pragma once

#include <memory>

#include "runtime/device/compile/kernel_cache.hpp"
#include "runtime/device/counter_reader.hpp"
#include "runtime/device/hip/event.hpp"
#include "runtime/device/hip/memory.hpp"
#include "runtime/device/hip/stream.hpp"
#include "runtime/device/interop.hpp"
#include "runtime/device/peer.hpp"

namespace greta::device::hip {

class HipDevice final : public Device, public Interop, public HardwareCounters, public PeerCopies {
 public:
  /// `compiler` may be a Failure, which compile() then returns.
  HipDevice(std::shared_ptr<Context> context, Result<std::shared_ptr<Compiler>> compiler,
            std::filesystem::path cache_directory);

  const DeviceInfo& info() const override { return context_->info(); }
  Result<std::unique_ptr<Buffer>> allocate(std::size_t bytes, Memory memory) override;
  MemoryStatistics memory() const override { return device_heap_->pool().statistics(); }
  Result<std::unique_ptr<Buffer>> wrap(std::uint64_t address, std::size_t bytes) override;
  void trim() override;
  Result<void> upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) override;
  Result<void> download_all(std::span<const Download> parts) override;
  Result<std::unique_ptr<Kernel>> compile(const KernelSource& source) override;
  Result<std::unique_ptr<Kernel>> load(const KernelSource& source,
                                       std::span<const std::byte> code_object) override;
  Result<std::unique_ptr<Stream>> create_stream() override;
  Result<std::unique_ptr<Stream>> wrap_stream(void* stream) override;
  Result<void*> native(const Stream& stream) override;
  Result<std::unique_ptr<Event>> create_event() override;
  Result<std::unique_ptr<Graph>> create_graph(
      const std::function<Result<void>(Stream&)>& record_work) override;
  Result<double> elapsed_us(const Event& start, const Event& stop) override;
  Result<std::unique_ptr<CounterReader>> open_counters() override;
  Result<bool> reach(Device& peer) override;
  Result<void> copy_between(Stream& stream, Buffer& to, std::size_t to_offset, const Buffer& from,
                            std::size_t from_offset, std::size_t bytes) override;

 private:
  /// Returns the staging buffer of uploads and downloads.
  HipBuffer& staging();
  /// Runs the recorded copies, and waits for them. After a failure, discards them.
  Result<void> finish_transfers(Result<void> recorded);

  std::shared_ptr<Context> context_;
  Result<std::shared_ptr<Compiler>> compiler_;
  std::shared_ptr<MemoryHeap> device_heap_;
  std::shared_ptr<MemoryHeap> staging_heap_;
  KernelCache cache_;
  std::unique_ptr<HipBuffer> staging_;
  HipStream transfers_;
};

}  // namespace greta::device::hip
