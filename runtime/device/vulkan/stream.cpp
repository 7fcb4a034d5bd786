#include "runtime/device/vulkan/stream.hpp"

#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/graph.hpp"

namespace greta::vulkan {

VulkanStream::VulkanStream(std::shared_ptr<Context> context)
    : Recorder(std::move(context)),
      pool_(make_command_pool(context_)),
      timeline_(std::make_shared<Timeline>(context_)) {}

VulkanStream::~VulkanStream() {
  discard();
  if (in_flight_.empty()) return;
  // Work in flight uses what is destroyed next. If it does not end, everything is left to it.
  static_cast<void>(guarded(*context_, [&]() -> Result<void> {
    timeline_->wait(timeline_->submitted(), context_->transfer_deadline());
    return {};
  }));
}

VkCommandBuffer VulkanStream::begin() {
  if (open_) return open_->commands;
  recycle();
  if (idle_.empty()) {
    Batch batch;
    batch.commands = allocate_commands(*context_, pool_, VK_COMMAND_BUFFER_LEVEL_PRIMARY);
    idle_.push_back(std::move(batch));
  }
  start(idle_.back().commands,
        {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
         .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT},
        false);  // earlier batches of the queue may still run
  open_ = std::move(idle_.back());
  idle_.pop_back();
  return open_->commands;
}

void VulkanStream::keep(std::shared_ptr<const void> object) {
  open_->keep.push_back(std::move(object));
}

void VulkanStream::finish_compiling(const VulkanKernel& kernel) {
  const std::vector<std::byte> arguments(kernel.pipeline()->argument_bytes);
  dispatch(*kernel.pipeline(), {0, 0, 0}, arguments);
  finish(context_->transfer_deadline());
}

Result<void> VulkanStream::record(Event& event) {
  return guarded(*context_, [&]() -> Result<void> {
    auto& known = const_cast<VulkanEvent&>(checked_event(*context_, event));
    const VkCommandBuffer commands = begin();
    known.restart(timeline_);
    open_->events.push_back(known.recording());
    const auto& query = *known.recording()->query;
    context_->vk().vkCmdWriteTimestamp2(commands, VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT, query.pool,
                                        query.index);
    order(commands);
    return {};
  });
}

Result<void> VulkanStream::replay(const Graph& graph) {
  return guarded(*context_, [&]() -> Result<void> {
    const auto* const known = dynamic_cast<const VulkanGraph*>(&graph);
    if (known == nullptr || known->context() != context_.get()) {
      throw Refusal(Status::invalid_argument, "the graph belongs to another device");
    }
    execute(known->commands()->handle());
    keep(known->commands());
    telemetry::count("device.replays");
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
    begin();
    open_->waits.emplace_back(known.timeline, known.value);
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
