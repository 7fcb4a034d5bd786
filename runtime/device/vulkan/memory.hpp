#pragma once

#include <memory>

#include "runtime/device/memory_pool.hpp"
#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// One kind of memory of an open device: its pool, and how the host accesses it.
class MemoryHeap {
 public:
  MemoryHeap(const std::shared_ptr<Context>& context, Memory memory);

  MemoryPool& pool() { return pool_; }
  const MemoryPool& pool() const { return pool_; }
  /// Whether this memory is mapped and cached, so that the host reads it at full speed.
  bool host_cached() const { return host_cached_; }

 private:
  MemoryHeap(const std::shared_ptr<Context>& context, std::uint32_t type);

  bool host_cached_;
  MemoryPool pool_;
};

class VulkanBuffer final : public Buffer {
 public:
  VulkanBuffer(std::shared_ptr<Context> context, std::shared_ptr<MemoryHeap> heap,
               const MemoryPool::Block& block, std::size_t size);
  ~VulkanBuffer() override;
  VulkanBuffer(const VulkanBuffer&) = delete;
  VulkanBuffer& operator=(const VulkanBuffer&) = delete;

  std::uint64_t address() const override { return address_; }
  std::size_t size() const override { return size_; }
  std::byte* host() const override { return host_; }

  VkBuffer handle() const { return handle_; }
  VkDeviceSize offset() const { return offset_; }  ///< offset of byte 0 within handle()
  bool host_cached() const { return heap_->host_cached(); }
  const Context* context() const { return context_.get(); }

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<MemoryHeap> heap_;
  MemoryPool::Block block_;
  VkBuffer handle_;
  VkDeviceSize offset_;
  std::uint64_t address_;
  std::byte* host_;
  std::size_t size_;
};

/// Allocates from a heap. Throws Refusal.
std::unique_ptr<VulkanBuffer> allocate(const std::shared_ptr<Context>& context,
                                       const std::shared_ptr<MemoryHeap>& heap, std::size_t bytes);

/// Returns the buffer as a VulkanBuffer. Throws `invalid_argument` for another device's buffer, and
/// when [offset, offset + bytes) is not inside it.
const VulkanBuffer& checked_range(const Context& context, const Buffer& buffer, std::size_t offset,
                                  std::size_t bytes);

}  // namespace greta::device::vulkan
