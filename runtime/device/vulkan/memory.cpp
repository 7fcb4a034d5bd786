#include "runtime/device/vulkan/memory.hpp"

#include <optional>
#include <utility>

#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"

namespace greta::device::vulkan {

namespace {

using BufferHandle = Handle<VkBuffer, &VolkDeviceTable::vkDestroyBuffer>;
using MemoryHandle = Handle<VkDeviceMemory, &VolkDeviceTable::vkFreeMemory>;

constexpr std::uint64_t alignment = 256;

/// Memory that the host reads and writes without flushing caches.
constexpr VkMemoryPropertyFlags visible =
    VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;

/// One VkDeviceMemory with one VkBuffer that covers all of it.
struct Chunk final : MemoryChunk {
  MemoryHandle memory;
  BufferHandle buffer;     // destroyed before its memory
  std::uint64_t bias = 0;  ///< bytes skipped to align the first address
  std::uint64_t address = 0;
  std::byte* host = nullptr;
};

/// Returns the first memory type that has all of `wanted` and none of `unwanted`.
std::optional<std::uint32_t> find_type(const VkPhysicalDeviceMemoryProperties& memory,
                                       VkMemoryPropertyFlags wanted,
                                       VkMemoryPropertyFlags unwanted) {
  const VkMemoryPropertyFlags special =
      VK_MEMORY_PROPERTY_PROTECTED_BIT | VK_MEMORY_PROPERTY_LAZILY_ALLOCATED_BIT |
      VK_MEMORY_PROPERTY_DEVICE_COHERENT_BIT_AMD | VK_MEMORY_PROPERTY_RDMA_CAPABLE_BIT_NV;
  for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
    const VkMemoryPropertyFlags flags = memory.memoryTypes[type].propertyFlags;
    if ((flags & wanted) == wanted && (flags & (unwanted | special)) == 0) return type;
  }
  return std::nullopt;
}

/// Returns the best available memory type for a kind of memory. The choices are ordered from best
/// to worst.
std::uint32_t choose_type(const PhysicalDevice& device, Memory memory) {
  constexpr VkMemoryPropertyFlags local = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT;
  constexpr VkMemoryPropertyFlags cached = VK_MEMORY_PROPERTY_HOST_CACHED_BIT;
  struct Choice {
    VkMemoryPropertyFlags wanted, unwanted;
  };
  std::vector<Choice> choices;
  if (memory == Memory::staging) {
    choices = {{visible | cached, local}, {visible | cached, 0}, {visible, 0}};
  } else if (device.info.unified_memory) {
    choices = {{local | visible | cached, 0}, {local | visible, 0}, {local, 0}};
  } else {
    choices = {{local, VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT}, {local, 0}};
  }
  for (const auto& [wanted, unwanted] : choices) {
    if (const auto type = find_type(device.memory, wanted, unwanted)) return *type;
  }
  throw Refusal(Status::unavailable, device.info.name + " has no memory for buffers");
}

bool has_flags(const Context& context, std::uint32_t type, VkMemoryPropertyFlags flags) {
  return (context.physical().memory.memoryTypes[type].propertyFlags & flags) == flags;
}

class ChunkSource final : public MemorySource {
 public:
  ChunkSource(std::shared_ptr<Context> context, std::uint32_t type)
      : context_(std::move(context)), type_(type) {}

  Result<std::unique_ptr<MemoryChunk>> allocate(std::uint64_t bytes) override {
    return guarded(*context_, [&]() -> Result<std::unique_ptr<MemoryChunk>> {
      auto chunk = create(bytes);
      // A driver may align less than GRETA promises. In that case the chunk needs room to skip to a
      // boundary.
      if (chunk->bias != 0) chunk = create(bytes + alignment);
      return std::unique_ptr<MemoryChunk>(std::move(chunk));
    });
  }

 private:
  std::unique_ptr<Chunk> create(std::uint64_t bytes) const {
    telemetry::count("device.memory_chunks");
    const auto& vk = context_->vk();
    auto chunk = std::make_unique<Chunk>();
    const VkMemoryRequirements requirements = make_buffer(*chunk, bytes);
    if ((requirements.memoryTypeBits >> type_ & 1U) == 0) {
      throw Refusal(Status::unavailable, "the device's memory can't hold buffers");
    }
    const VkMemoryAllocateFlagsInfo flags{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_FLAGS_INFO,
                                          .flags = VK_MEMORY_ALLOCATE_DEVICE_ADDRESS_BIT};
    const VkMemoryAllocateInfo allocate{.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
                                        .pNext = &flags,
                                        .allocationSize = requirements.size,
                                        .memoryTypeIndex = type_};
    chunk->memory = make<MemoryHandle, &VolkDeviceTable::vkAllocateMemory>(context_, allocate,
                                                                           "vkAllocateMemory");
    const VkDeviceMemory memory = chunk->memory.get();
    check(vk.vkBindBufferMemory(context_->handle(), chunk->buffer.get(), memory, 0),
          "vkBindBufferMemory");
    const VkBufferDeviceAddressInfo which{.sType = VK_STRUCTURE_TYPE_BUFFER_DEVICE_ADDRESS_INFO,
                                          .buffer = chunk->buffer.get()};
    const std::uint64_t start = vk.vkGetBufferDeviceAddress(context_->handle(), &which);
    chunk->address = (start + alignment - 1) / alignment * alignment;
    chunk->bias = chunk->address - start;
    if (has_flags(*context_, type_, visible)) {
      void* mapped = nullptr;
      check(vk.vkMapMemory(context_->handle(), memory, 0, VK_WHOLE_SIZE, 0, &mapped),
            "vkMapMemory");
      chunk->host = static_cast<std::byte*>(mapped) + chunk->bias;
    }
    return chunk;
  }

  VkMemoryRequirements make_buffer(Chunk& chunk, std::uint64_t bytes) const {
    const VkBufferCreateInfo create{
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = bytes,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT |
                 VK_BUFFER_USAGE_TRANSFER_DST_BIT | VK_BUFFER_USAGE_SHADER_DEVICE_ADDRESS_BIT,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE};
    chunk.buffer =
        make<BufferHandle, &VolkDeviceTable::vkCreateBuffer>(context_, create, "vkCreateBuffer");
    VkMemoryRequirements requirements{};
    context_->vk().vkGetBufferMemoryRequirements(context_->handle(), chunk.buffer.get(),
                                                 &requirements);
    return requirements;
  }

  std::shared_ptr<Context> context_;
  std::uint32_t type_;
};

MemoryPool::Options pool_options(const Context& context, std::uint32_t type) {
  const auto& memory = context.physical().memory;
  MemoryPool::Options options;
  options.alignment = alignment;
  options.limit_bytes = memory.memoryHeaps[memory.memoryTypes[type].heapIndex].size;
  options.max_chunk_bytes = context.info().max_allocation_bytes;
  return options;
}

}  // namespace

MemoryHeap::MemoryHeap(const std::shared_ptr<Context>& context, Memory memory)
    : MemoryHeap(context, choose_type(context->physical(), memory)) {}

MemoryHeap::MemoryHeap(const std::shared_ptr<Context>& context, std::uint32_t type)
    : host_cached_(has_flags(*context, type, visible | VK_MEMORY_PROPERTY_HOST_CACHED_BIT)),
      pool_(std::make_unique<ChunkSource>(context, type), pool_options(*context, type)) {}

VulkanBuffer::VulkanBuffer(std::shared_ptr<Context> context, std::shared_ptr<MemoryHeap> heap,
                           const MemoryPool::Block& block, std::size_t size)
    : context_(std::move(context)), heap_(std::move(heap)), block_(block), size_(size) {
  const auto& chunk = static_cast<const Chunk&>(*block.chunk);
  handle_ = chunk.buffer.get();
  offset_ = chunk.bias + block.offset;
  address_ = chunk.address + block.offset;
  host_ = chunk.host == nullptr ? nullptr : chunk.host + block.offset;
}

VulkanBuffer::~VulkanBuffer() {
  heap_->pool().release(block_);
}

std::unique_ptr<VulkanBuffer> allocate(const std::shared_ptr<Context>& context,
                                       const std::shared_ptr<MemoryHeap>& heap, std::size_t bytes) {
  const auto block = heap->pool().allocate(bytes);
  if (!block) throw Refusal(block.failure());
  return std::make_unique<VulkanBuffer>(context, heap, *block, bytes);
}

const VulkanBuffer& checked_range(const Context& context, const Buffer& buffer, std::size_t offset,
                                  std::size_t bytes) {
  const auto* const known = dynamic_cast<const VulkanBuffer*>(&buffer);
  if (known == nullptr || known->context() != &context) {
    throw Refusal(Status::invalid_argument, "the buffer belongs to another device");
  }
  check_range(buffer, offset, bytes);
  return *known;
}

}  // namespace greta::device::vulkan
