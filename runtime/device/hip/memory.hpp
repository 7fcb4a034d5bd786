#pragma once

#include <memory>

#include "runtime/device/hip/context.hpp"
#include "runtime/device/memory_pool.hpp"

namespace greta::device::hip {

/// One kind of memory of an open device.
class MemoryHeap {
 public:
  MemoryHeap(const std::shared_ptr<Context>& context, Memory memory);

  MemoryPool& pool() { return pool_; }
  const MemoryPool& pool() const { return pool_; }
  bool host_visible() const { return host_visible_; }

 private:
  bool host_visible_;
  MemoryPool pool_;
};

class HipBuffer final : public Buffer {
 public:
  HipBuffer(std::shared_ptr<Context> context, std::shared_ptr<MemoryHeap> heap,
            const MemoryPool::Block& block, std::size_t size);
  /// Uses memory of another library, which it does not free.
  HipBuffer(std::shared_ptr<Context> context, std::byte* memory, std::size_t size);
  ~HipBuffer() override;
  HipBuffer(const HipBuffer&) = delete;
  HipBuffer& operator=(const HipBuffer&) = delete;

  std::uint64_t address() const override { return reinterpret_cast<std::uint64_t>(pointer_); }
  std::size_t size() const override { return size_; }
  std::byte* host() const override { return host_visible_ ? pointer_ : nullptr; }

  std::byte* pointer() const { return pointer_; }  ///< device address
  const Context* context() const { return context_.get(); }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<MemoryHeap> heap_;  ///< null: the memory is another library's
  MemoryPool::Block block_;
  std::byte* pointer_;
  std::size_t size_;
  bool host_visible_;
};

/// Allocates from a heap. Throws Refusal.
std::unique_ptr<HipBuffer> allocate(const std::shared_ptr<Context>& context,
                                    const std::shared_ptr<MemoryHeap>& heap, std::size_t bytes);

/// Returns the address of byte `offset` of a buffer. Throws `invalid_argument` for another device's
/// buffer, and when [offset, offset + bytes) is not inside it.
std::byte* checked_range(const Context& context, const Buffer& buffer, std::size_t offset,
                         std::size_t bytes);

}  // namespace greta::device::hip
