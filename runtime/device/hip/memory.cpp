#include "runtime/device/hip/memory.hpp"

#include <fmt/format.h>

#include <utility>

#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::device::hip {

namespace {

struct Chunk : MemoryChunk {
  std::byte* start = nullptr;
};

template <hipError_t (*Functions::*free)(void*)>
struct OwnedChunk final : Chunk {
  Handle<void*, free> owner;
};

class ChunkSource final : public MemorySource {
 public:
  ChunkSource(std::shared_ptr<Context> context, Memory memory)
      : context_(std::move(context)), memory_(memory) {}

  Result<std::unique_ptr<MemoryChunk>> allocate(std::uint64_t bytes) override {
    return entered(*context_, [&]() -> Result<std::unique_ptr<MemoryChunk>> {
      telemetry::count("device.memory_chunks");
      const Functions& hip = context_->functions();
      void* start = nullptr;
      if (memory_ == Memory::device) {
        context_->check(hip.hipMalloc(&start, bytes), "hipMalloc");
        return own<&Functions::hipFree>(start);
      }
      context_->check(hip.hipHostMalloc(&start, bytes, hipHostMallocMapped), "hipHostMalloc");
      return own<&Functions::hipHostFree>(start);
    });
  }

 private:
  template <hipError_t (*Functions::*free)(void*)>
  std::unique_ptr<MemoryChunk> own(void* start) const {
    auto chunk = std::make_unique<OwnedChunk<free>>();
    chunk->owner = {context_, start};
    chunk->start = static_cast<std::byte*>(start);
    return chunk;
  }

  std::shared_ptr<Context> context_;
  Memory memory_;
};

MemoryPool::Options pool_options(const Context& context, Memory memory) {
  MemoryPool::Options options;
  if (memory == Memory::device) {
    options.limit_bytes = context.info().memory_bytes;
    options.max_chunk_bytes = context.info().max_allocation_bytes;
  }
  options.exact = context.info().watches_bounds;
  return options;
}

}  // namespace

MemoryHeap::MemoryHeap(const std::shared_ptr<Context>& context, Memory memory)
    : host_visible_(memory == Memory::staging || context->info().unified_memory),
      pool_(std::make_unique<ChunkSource>(context, memory), pool_options(*context, memory)) {}

HipBuffer::HipBuffer(std::shared_ptr<Context> context, std::shared_ptr<MemoryHeap> heap,
                     const MemoryPool::Block& block, std::size_t size)
    : context_(std::move(context)),
      heap_(std::move(heap)),
      block_(block),
      pointer_(static_cast<const Chunk&>(*block.chunk).start + block.offset),
      size_(size),
      host_visible_(heap_->host_visible()) {}

HipBuffer::HipBuffer(std::shared_ptr<Context> context, std::byte* memory, std::size_t size)
    : context_(std::move(context)),
      pointer_(memory),
      size_(size),
      host_visible_(context_->info().unified_memory) {}

HipBuffer::~HipBuffer() {
  if (heap_) heap_->pool().release(block_);
}

std::unique_ptr<HipBuffer> allocate(const std::shared_ptr<Context>& context,
                                    const std::shared_ptr<MemoryHeap>& heap, std::size_t bytes) {
  const auto block = heap->pool().allocate(bytes);
  if (!block) throw Refusal(block.failure());
  return std::make_unique<HipBuffer>(context, heap, *block, bytes);
}

std::byte* checked_range(const Context& context, const Buffer& buffer, std::size_t offset,
                         std::size_t bytes) {
  const auto* const known = dynamic_cast<const HipBuffer*>(&buffer);
  if (known == nullptr || known->context() != &context) {
    throw Refusal(Status::invalid_argument, "the buffer belongs to another device");
  }
  check_range(buffer, offset, bytes);
  return known->pointer() + offset;
}

}  // namespace greta::device::hip
