#include "runtime/device/vulkan/stream.hpp"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/memory.hpp"

namespace greta::vulkan {

namespace {

constexpr VkPipelineStageFlags2 work_stages =
    VK_PIPELINE_STAGE_2_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_2_TRANSFER_BIT;

void barrier(const Context& context, VkCommandBuffer commands, VkPipelineStageFlags2 to_stages,
             VkAccessFlags2 to_access) {
  const VkMemoryBarrier2 memory{
      .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER_2,
      .srcStageMask = work_stages,
      .srcAccessMask = VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT,
      .dstStageMask = to_stages,
      .dstAccessMask = to_access};
  const VkDependencyInfo dependency{.sType = VK_STRUCTURE_TYPE_DEPENDENCY_INFO,
                                    .memoryBarrierCount = 1,
                                    .pMemoryBarriers = &memory};
  context.vk().vkCmdPipelineBarrier2(commands, &dependency);
}

}  // namespace

VulkanStream::VulkanStream(std::shared_ptr<Context> context)
    : context_(std::move(context)), timeline_(std::make_shared<Timeline>(context_)) {
  const VkCommandPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
                                       .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
                                       .queueFamilyIndex = context_->physical().queue_family};
  pool_ = make<decltype(pool_), &VolkDeviceTable::vkCreateCommandPool>(context_, create,
                                                                       "vkCreateCommandPool");
}

VulkanStream::~VulkanStream() {
  discard();
  if (in_flight_.empty()) return;
  // Work in flight uses what is destroyed next. If it does not end, everything is left to it.
  static_cast<void>(guarded(*context_, [&]() -> Result<void> {
    timeline_->wait(timeline_->submitted(), context_->transfer_deadline());
    return {};
  }));
}

VulkanStream::Batch& VulkanStream::begin() {
  if (open_) return *open_;
  recycle();
  if (idle_.empty()) {
    const VkCommandBufferAllocateInfo allocate{
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = pool_.get(),
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1};
    Batch batch;
    check(context_->vk().vkAllocateCommandBuffers(context_->handle(), &allocate, &batch.commands),
          "vkAllocateCommandBuffers");
    idle_.push_back(std::move(batch));
  }
  const VkCommandBufferBeginInfo info{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
                                      .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT};
  check(context_->vk().vkBeginCommandBuffer(idle_.back().commands, &info), "vkBeginCommandBuffer");
  open_ = std::move(idle_.back());
  idle_.pop_back();
  bound_ = nullptr;
  unordered_ = true;  // after earlier batches of the queue
  return *open_;
}

void VulkanStream::order() {
  barrier(*context_, open_->commands, work_stages,
          VK_ACCESS_2_MEMORY_READ_BIT | VK_ACCESS_2_MEMORY_WRITE_BIT);
  unordered_ = false;
}

// Barriers cost microseconds on a GPU, so they are placed where no pair of events has them between
// it: after a transfer at once, after a launch when the next work comes, and after a timestamp.
VkCommandBuffer VulkanStream::begin_command() {
  const VkCommandBuffer commands = begin().commands;
  if (unordered_) order();
  unordered_ = true;
  return commands;
}

void VulkanStream::dispatch(const Pipeline& pipeline, Grid grid,
                            std::span<const std::byte> arguments) {
  const auto& vk = context_->vk();
  const VkCommandBuffer commands = begin_command();
  if (bound_ != &pipeline) {
    vk.vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, pipeline.pipeline.get());
    bound_ = &pipeline;
  }
  if (pipeline.push_bytes != 0) {
    std::array<std::byte, most_push_bytes> padded{};
    std::memcpy(padded.data(), arguments.data(), arguments.size());
    vk.vkCmdPushConstants(commands, pipeline.layout.get(), VK_SHADER_STAGE_COMPUTE_BIT, 0,
                          pipeline.push_bytes, padded.data());
  }
  vk.vkCmdDispatch(commands, grid[0], grid[1], grid[2]);
}

Result<void> VulkanStream::launch(const Kernel& kernel, Grid grid,
                                  std::span<const std::byte> arguments) {
  return guarded(*context_, [&]() -> Result<void> {
    const auto* const known = dynamic_cast<const VulkanKernel*>(&kernel);
    if (known == nullptr || known->context() != context_.get()) {
      throw Refusal(Status::invalid_argument, "the kernel belongs to another device");
    }
    const auto& pipeline = known->pipeline();
    if (arguments.size() != pipeline->argument_bytes) {
      throw Refusal(Status::invalid_argument,
                    fmt::format("{} bytes of arguments for a kernel that takes {}",
                                arguments.size(), pipeline->argument_bytes));
    }
    const auto& most = context_->info().max_grid;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (grid[axis] == 0) {
        throw Refusal(Status::invalid_argument,
                      fmt::format("an empty grid: {}", fmt::join(grid, "x")));
      }
      if (grid[axis] > most[axis]) {
        throw Refusal(Status::launch, fmt::format("a grid of {} workgroups, the device takes {}",
                                                  fmt::join(grid, "x"), fmt::join(most, "x")));
      }
    }
    const bool first = !open_ || bound_ != pipeline.get();
    dispatch(*pipeline, grid, arguments);
    if (first) open_->keep.push_back(pipeline);
    telemetry::count("device.launches");
    return {};
  });
}

void VulkanStream::finish_compiling(const VulkanKernel& kernel) {
  const std::vector<std::byte> arguments(kernel.pipeline()->argument_bytes);
  dispatch(*kernel.pipeline(), {0, 0, 0}, arguments);
  finish(context_->transfer_deadline());
}

Result<void> VulkanStream::copy(Buffer& to, std::size_t to_offset, const Buffer& from,
                                std::size_t from_offset, std::size_t bytes) {
  return guarded(*context_, [&]() -> Result<void> {
    const VulkanBuffer& target = checked_range(*context_, to, to_offset, bytes);
    const VulkanBuffer& origin = checked_range(*context_, from, from_offset, bytes);
    const bool apart = to_offset >= from_offset + bytes || from_offset >= to_offset + bytes;
    if (&to == &from && !apart) {
      throw Refusal(Status::invalid_argument, "a copy whose source and target overlap");
    }
    if (bytes == 0) return {};
    const VkBufferCopy region{origin.offset() + from_offset, target.offset() + to_offset, bytes};
    context_->vk().vkCmdCopyBuffer(begin_command(), origin.handle(), target.handle(), 1, &region);
    order();
    return {};
  });
}

Result<void> VulkanStream::fill(Buffer& to, std::size_t offset, std::size_t bytes,
                                std::uint32_t pattern) {
  return guarded(*context_, [&]() -> Result<void> {
    const VulkanBuffer& target = checked_range(*context_, to, offset, bytes);
    if (offset % 4 != 0 || bytes % 4 != 0) {
      throw Refusal(
          Status::invalid_argument,
          fmt::format("a fill of {} bytes at {}: both must be multiples of 4", bytes, offset));
    }
    if (bytes == 0) return {};
    context_->vk().vkCmdFillBuffer(begin_command(), target.handle(), target.offset() + offset,
                                   bytes, pattern);
    order();
    return {};
  });
}

Result<void> VulkanStream::record(Event& event) {
  return guarded(*context_, [&]() -> Result<void> {
    auto& known = const_cast<VulkanEvent&>(checked_event(*context_, event));
    Batch& batch = begin();
    known.restart(timeline_);
    batch.events.push_back(known.recording());
    const auto& query = *known.recording()->query;
    context_->vk().vkCmdWriteTimestamp2(batch.commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                        query.pool, query.index);
    if (unordered_) order();
    return {};
  });
}

Result<void> VulkanStream::wait(const Event& event) {
  return guarded(*context_, [&]() -> Result<void> {
    const Recording& known = *checked_event(*context_, event).recording();
    if (known.timeline == timeline_) return {};  // in order anyway
    if (!known.submitted()) {
      throw Refusal(Status::invalid_argument,
                    "waiting for an event that was not recorded and submitted");
    }
    submit_batch();
    begin().waits.emplace_back(known.timeline, known.value);
    return {};
  });
}

void VulkanStream::submit_batch() {
  if (!open_) return;
  barrier(*context_, open_->commands, VK_PIPELINE_STAGE_2_HOST_BIT, VK_ACCESS_2_HOST_READ_BIT);
  check(context_->vk().vkEndCommandBuffer(open_->commands), "vkEndCommandBuffer");
  open_->value = timeline_->next();
  std::vector<VkSemaphoreSubmitInfo> waits;
  for (const auto& [timeline, value] : open_->waits) {
    waits.push_back({.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                     .semaphore = timeline->handle(),
                     .value = value,
                     .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT});
  }
  const VkCommandBufferSubmitInfo commands{.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO,
                                           .commandBuffer = open_->commands};
  const VkSemaphoreSubmitInfo done{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                   .semaphore = timeline_->handle(),
                                   .value = open_->value,
                                   .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
  context_->submit({.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                    .waitSemaphoreInfoCount = static_cast<std::uint32_t>(waits.size()),
                    .pWaitSemaphoreInfos = waits.data(),
                    .commandBufferInfoCount = 1,
                    .pCommandBufferInfos = &commands,
                    .signalSemaphoreInfoCount = 1,
                    .pSignalSemaphoreInfos = &done});
  timeline_->advance();
  in_flight_.push_back(std::move(*open_));
  open_.reset();
}

Result<void> VulkanStream::submit() {
  return guarded(*context_, [&]() -> Result<void> {
    submit_batch();
    return {};
  });
}

void VulkanStream::finish(Deadline deadline) {
  submit_batch();
  timeline_->wait(timeline_->submitted(), deadline);
  recycle();
}

Result<void> VulkanStream::synchronize(Deadline deadline) {
  return guarded(*context_, [&]() -> Result<void> {
    finish(deadline);
    return {};
  });
}

void VulkanStream::discard() {
  if (!open_) return;
  // A command buffer that can't be reset is left to its pool.
  const bool reset =
      !context_->lost() && context_->vk().vkResetCommandBuffer(open_->commands, 0) == VK_SUCCESS;
  for (const auto& event : open_->events) event->timeline.reset();
  open_->release();
  if (reset) idle_.push_back(std::move(*open_));
  open_.reset();
}

void VulkanStream::Batch::release() {
  keep.clear();
  events.clear();
  waits.clear();
}

void VulkanStream::recycle() {
  if (in_flight_.empty()) return;
  const std::uint64_t completed = timeline_->completed();
  while (!in_flight_.empty() && in_flight_.front().value <= completed) {
    Batch& batch = in_flight_.front();
    batch.release();
    idle_.push_back(std::move(batch));
    in_flight_.pop_front();
  }
}

}  // namespace greta::vulkan
