#include "runtime/device/hip/hip_device.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/device/hip/graph.hpp"
#include "runtime/device/staged_downloads.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::device::hip {

namespace {
constexpr std::size_t staging_bytes = std::size_t{16} << 20;
}

HipDevice::HipDevice(std::shared_ptr<Context> context, Result<std::shared_ptr<Compiler>> compiler,
                     std::filesystem::path cache_directory)
    : context_(std::move(context)),
      compiler_(std::move(compiler)),
      device_heap_(std::make_shared<MemoryHeap>(context_, Memory::device)),
      staging_heap_(std::make_shared<MemoryHeap>(context_, Memory::staging)),
      cache_(std::move(cache_directory)),
      transfers_(context_) {}

Result<std::unique_ptr<Buffer>> HipDevice::allocate(std::size_t bytes, Memory memory) {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Buffer>> {
    const auto& heap = memory == Memory::device ? device_heap_ : staging_heap_;
    return std::unique_ptr<Buffer>(hip::allocate(context_, heap, bytes));
  });
}

Result<std::unique_ptr<Buffer>> HipDevice::wrap(std::uint64_t address, std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<std::unique_ptr<Buffer>> {
    auto* const memory = reinterpret_cast<std::byte*>(address);
    return std::unique_ptr<Buffer>(std::make_unique<HipBuffer>(context_, memory, bytes));
  });
}

void HipDevice::trim() {
  if (context_->lost()) return;
  staging_.reset();
  device_heap_->pool().trim();
  staging_heap_->pool().trim();
}

HipBuffer& HipDevice::staging() {
  if (!staging_) staging_ = hip::allocate(context_, staging_heap_, staging_bytes);
  return *staging_;
}

Result<void> HipDevice::finish_transfers(Result<void> recorded) {
  auto done = std::move(recorded);
  if (done) done = transfers_.synchronize(context_->options().transfer_deadline);
  if (!done) transfers_.discard();
  return done;
}

Result<void> HipDevice::upload(Buffer& to, std::size_t offset, std::span<const std::byte> from) {
  return entered(*context_, [&]() -> Result<void> {
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
      auto recorded = transfers_.copy(to, offset, staging(), 0, bytes);
      if (auto done = finish_transfers(std::move(recorded)); !done) return done;
      offset += bytes;
      from = from.subspan(bytes);
    }
    return {};
  });
}

Result<void> HipDevice::download_all(std::span<const Download> parts) {
  return entered(*context_, [&]() -> Result<void> {
    const telemetry::Span span("device.download");
    std::vector<Download> staged;
    for (const Download& part : parts) {
      checked_range(*context_, *part.from, part.offset, part.to.size());
      telemetry::count("device.downloaded_bytes", part.to.size());
      if (part.from->host() != nullptr) {
        std::copy_n(part.from->host() + part.offset, part.to.size(), part.to.begin());
      } else if (!part.to.empty()) {
        staged.push_back(part);
      }
    }
    if (staged.empty()) return {};
    const auto copy = [&](const Download& part, std::size_t first, std::size_t bytes,
                          std::size_t at) -> Result<void> {
      auto recorded = transfers_.copy(staging(), at, *part.from, part.offset + first, bytes);
      return recorded ? recorded : finish_transfers(std::move(recorded));
    };
    const auto wait = [&] { return finish_transfers({}); };
    return StagedDownloads(staging().host(), staging_bytes).run(staged, copy, wait);
  });
}

Result<std::unique_ptr<Kernel>> HipDevice::compile(const KernelSource& source) {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Kernel>> {
    // A call of a vendor's library needs no compiler.
    if (source.call) return std::unique_ptr<Kernel>(hip::load(context_, source, {}));
    if (!compiler_) return compiler_.failure();
    return std::unique_ptr<Kernel>(hip::compile(context_, **compiler_, cache_, source));
  });
}

Result<std::unique_ptr<Kernel>> HipDevice::load(const KernelSource& source,
                                                std::span<const std::byte> code_object) {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Kernel>> {
    return std::unique_ptr<Kernel>(hip::load(context_, source, code_object));
  });
}

Result<std::unique_ptr<Stream>> HipDevice::create_stream() {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Stream>> {
    return std::unique_ptr<Stream>(std::make_unique<HipStream>(context_));
  });
}

Result<std::unique_ptr<Stream>> HipDevice::wrap_stream(void* stream) {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Stream>> {
    return std::unique_ptr<Stream>(
        std::make_unique<HipStream>(context_, static_cast<hipStream_t>(stream)));
  });
}

Result<void*> HipDevice::native(const Stream& stream) {
  const auto* const known = dynamic_cast<const HipStream*>(&stream);
  if (known == nullptr || known->context() != context_.get()) {
    return Failure{Status::invalid_argument, "the stream belongs to another device", {}};
  }
  return static_cast<void*>(known->native());
}

Result<std::unique_ptr<Event>> HipDevice::create_event() {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Event>> {
    return std::unique_ptr<Event>(std::make_unique<HipEvent>(context_));
  });
}

Result<std::unique_ptr<Graph>> HipDevice::create_graph(
    const std::function<Result<void>(Stream&)>& record_work) {
  return entered(*context_, [&]() -> Result<std::unique_ptr<Graph>> {
    return std::unique_ptr<Graph>(record_graph(context_, record_work));
  });
}

Result<double> HipDevice::elapsed_us(const Event& start, const Event& stop) {
  return entered(*context_, [&]() -> Result<double> {
    return hip::elapsed_us(checked_event(*context_, start), checked_event(*context_, stop));
  });
}

Result<std::unique_ptr<CounterReader>> HipDevice::open_counters() {
  return entered(*context_, [&]() -> Result<std::unique_ptr<CounterReader>> {
    const auto& platform = context_->platform();
    if (platform.open_counters) return platform.open_counters(context_->device());
    return Failure{Status::unavailable,
                   info().id() + " runs kernels on the CPU, and has no hardware counters",
                   {}};
  });
}

}  // namespace greta::device::hip
