#include "runtime/device/vulkan/recorder.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "runtime/device/launch_checks.hpp"
#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/memory.hpp"

namespace greta::device::vulkan {

namespace {

/// One side of a barrier: the work that waits, or the work that is waited for.
struct Scope {
  VkPipelineStageFlags2 stages;
  VkAccessFlags2 reads, writes;
};

constexpr Scope launches{VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT, VK_ACCESS_2_SHADER_READ_BIT,
                         VK_ACCESS_2_SHADER_WRITE_BIT};
constexpr Scope work{VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT,
                     VK_ACCESS_2_MEMORY_READ_BIT, VK_ACCESS_2_MEMORY_WRITE_BIT};
constexpr Scope work_and_host{work.stages | VK_PIPELINE_STAGE_2_HOST_BIT, work.reads, work.writes};

/// Makes later commands of a command buffer wait for earlier ones. For some drivers, a barrier
/// between launches is much cheaper than one that includes transfers.
void barrier(const Context& context, VkCommandBuffer commands, const Scope& from, const Scope& to) {
  const VkMemoryBarrier2 memory{.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
                                .srcStageMask = from.stages,
                                .srcAccessMask = from.writes,
                                .dstStageMask = to.stages,
                                .dstAccessMask = to.reads | to.writes};
  const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = &memory};
  context.vk().vkCmdPipelineBarrier2(commands, &dependency);
}

}  // namespace

CommandPool make_command_pool(const std::shared_ptr<Context>& context) {
  const VkCommandPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                       .queueFamilyIndex = context->physical().queue_family};
  return make<CommandPool, &VolkDeviceTable::vkCreateCommandPool>(context, create,
                                                                  "vkCreateCommandPool");
}

VkCommandBuffer allocate_commands(const Context& context, const CommandPool& pool) {
  const VkCommandBufferAllocateInfo allocate{
      .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
      .commandPool = pool.get(),
      .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
      .commandBufferCount = 1};
  VkCommandBuffer commands = VK_NULL_HANDLE;
  check(context.vk().vkAllocateCommandBuffers(context.handle(), &allocate, &commands),
        "vkAllocateCommandBuffers");
  return commands;
}

void Recorder::start(VkCommandBuffer commands, VkCommandBufferUsageFlags usage) {
  const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = usage};
  check(context_->vk().vkBeginCommandBuffer(commands, &info), "vkBeginCommandBuffer");
  bound_ = nullptr;
  unordered_ = false;
}

void Recorder::order(std::span<const VkCommandBuffer> all, Next next) {
  if (!unordered_) return;
  const Scope& scope = next == Next::launch ? launches : work;
  for (const VkCommandBuffer commands : all) barrier(*context_, commands, scope, scope);
  unordered_ = false;
}

std::span<const VkCommandBuffer> Recorder::begin_command(Next next) {
  const auto all = begin();
  order(all, next);
  unordered_ = true;
  return all;
}

void Recorder::end(std::span<const VkCommandBuffer> all, bool more, VkQueryPool query) {
  if (more) order(all);
  for (const VkCommandBuffer commands : all) {
    if (!more) barrier(*context_, commands, work, work_and_host);
    if (query != VK_NULL_HANDLE) context_->vk().vkCmdEndQuery(commands, query, 0);
    check(context_->vk().vkEndCommandBuffer(commands), "vkEndCommandBuffer");
  }
}

void Recorder::dispatch(const Pipeline& pipeline, Grid grid, std::span<const std::byte> arguments) {
  const auto& vk = context_->vk();
  std::array<std::byte, most_push_bytes> padded{};
  std::memcpy(padded.data(), arguments.data(), std::min(arguments.size(), padded.size()));
  for (const VkCommandBuffer commands : begin_command(Next::launch)) {
    if (bound_ != &pipeline) {
      vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline.get());
    }
    if (pipeline.push_bytes != 0) {
      vk.vkCmdPushConstants(commands, pipeline.layout.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                            pipeline.push_bytes, padded.data());
    }
    vk.vkCmdDispatch(commands, grid[0], grid[1], grid[2]);
  }
  bound_ = &pipeline;
}

Result<void> Recorder::launch(const Kernel& kernel, Grid grid, std::span<const std::byte> arguments,
                              LaunchOrder) {
  return guarded(*context_, [&]() -> Result<void> {
    const auto* const known = dynamic_cast<const VulkanKernel*>(&kernel);
    if (known == nullptr || known->context() != context_.get()) {
      throw Refusal(Status::invalid_argument, "the kernel belongs to another device");
    }
    const auto& pipeline = known->pipeline();
    check_launch(context_->info(), grid, arguments.size(), pipeline->argument_bytes);
    begin();
    if (bound_ != pipeline.get()) keep(pipeline);
    dispatch(*pipeline, grid, arguments);
    telemetry::count("device.launches");
    return {};
  });
}

Result<void> Recorder::copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                            std::size_t from_offset, std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<void> {
    const VulkanBuffer& target = checked_range(*context_, to, to_offset, bytes);
    const VulkanBuffer& origin = checked_range(*context_, from, from_offset, bytes);
    check_apart(to, to_offset, from, from_offset, bytes);
    if (bytes == 0) return {};
    const VkBufferCopy region{origin.offset() + from_offset, target.offset() + to_offset, bytes};
    const auto all = begin_command(Next::anything);
    for (const VkCommandBuffer commands : all) {
      context_->vk().vkCmdCopyBuffer(commands, origin.handle(), target.handle(), 1, &region);
    }
    order(all);
    return {};
  });
}

Result<void> Recorder::fill(Buffer& to, std::size_t offset, std::size_t bytes,
                            std::uint32_t pattern) {
  return guarded(*context_, [&]() -> Result<void> {
    const VulkanBuffer& target = checked_range(*context_, to, offset, bytes);
    check_words(offset, bytes);
    if (bytes == 0) return {};
    const auto all = begin_command(Next::anything);
    for (const VkCommandBuffer commands : all) {
      context_->vk().vkCmdFillBuffer(commands, target.handle(), target.offset() + offset, bytes,
                                     pattern);
    }
    order(all);
    return {};
  });
}

}  // namespace greta::device::vulkan
