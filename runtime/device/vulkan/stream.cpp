#include "runtime/device/vulkan/stream.hpp"

#include "runtime/device/telemetry.hpp"
#include "runtime/device/vulkan/graph.hpp"

namespace greta::device::vulkan {

VulkanStream::VulkanStream(std::shared_ptr<Context> context)
    : Recorder(std::move(context)),
      pool_(make_command_pool(context_)),
      timeline_(std::make_shared<Timeline>(context_)) {}

VulkanStream::~VulkanStream() {
  discard();
  if (in_flight_.empty()) return;
  // Work in flight uses the objects that are destroyed next. If it does not finish, the device is
  // marked as lost and the objects are kept.
  static_cast<void>(guarded(*context_, [&]() -> Result<void> {
    timeline_->wait(timeline_->submitted(), context_->transfer_deadline());
    return {};
  }));
}

VulkanStream::Batch& VulkanStream::open() {
  if (open_) return *open_;
  recycle();
  if (spare_.empty()) return open_.emplace();
  open_ = std::move(spare_.back());
  spare_.pop_back();
  return *open_;
}

void VulkanStream::append(VkCommandBuffer commands) {
  open_->commands.push_back(
      {.sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_SUBMIT_INFO, .commandBuffer = commands});
}

std::span<const VkCommandBuffer> VulkanStream::begin() {
  if (recorded_ == VK_NULL_HANDLE) {
    open();
    if (idle_.empty()) idle_.push_back(allocate_commands(*context_, pool_));
    start(idle_.back(), VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT);
    recorded_ = idle_.back();
    idle_.pop_back();
    open_->own.push_back(recorded_);
    append(recorded_);
    if (counted_ != nullptr) context_->vk().vkCmdBeginQuery(recorded_, counted_->pool, 0, 0);
  }
  return {&recorded_, 1};
}

void VulkanStream::close(bool more) {
  if (recorded_ == VK_NULL_HANDLE) return;
  end({&recorded_, 1}, more, counted_ != nullptr ? counted_->pool : VK_NULL_HANDLE);
  recorded_ = VK_NULL_HANDLE;
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
    const auto commands = begin();
    known.restart(timeline_);
    open_->events.push_back(known.recording());
    const auto& query = *known.recording()->query;
    context_->vk().vkCmdWriteTimestamp2(commands.front(), VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
                                        query.pool, query.index);
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
    open();
    close(true);
    append(known->next());
    keep(known->commands());
    telemetry::count("device.replays");
    return {};
  });
}

Result<void> VulkanStream::wait(const Event& event) {
  return guarded(*context_, [&]() -> Result<void> {
    const Recording& known = *checked_event(*context_, event).recording();
    if (known.timeline == timeline_) return {};  // a stream runs in order
    if (!known.submitted()) {
      throw Refusal(Status::invalid_argument,
                    "waiting for an event that was not recorded and submitted");
    }
    submit_batch();
    open().waits.emplace_back(known.timeline, known.value);
    return {};
  });
}

void VulkanStream::submit_batch() {
  if (!open_) return;
  close(false);
  open_->value = timeline_->next();
  std::vector<VkSemaphoreSubmitInfo> waits;
  for (const auto& [timeline, value] : open_->waits) {
    waits.push_back({.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                     .semaphore = timeline->handle(),
                     .value = value,
                     .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT});
  }
  const VkSemaphoreSubmitInfo done{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
                                   .semaphore = timeline_->handle(),
                                   .value = open_->value,
                                   .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT};
  const VkPerformanceQuerySubmitInfoKHR pass{
      .sType = VK_STRUCTURE_TYPE_PERFORMANCE_QUERY_SUBMIT_INFO_KHR,
      .counterPassIndex = counted_ != nullptr ? counted_->index : 0};
  context_->submit({.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
                    .pNext = counted_ != nullptr ? &pass : nullptr,
                    .waitSemaphoreInfoCount = static_cast<std::uint32_t>(waits.size()),
                    .pWaitSemaphoreInfos = waits.data(),
                    .commandBufferInfoCount = static_cast<std::uint32_t>(open_->commands.size()),
                    .pCommandBufferInfos = open_->commands.data(),
                    .signalSemaphoreInfoCount = 1,
                    .pSignalSemaphoreInfos = &done});
  timeline_->advance();
  in_flight_.push_back(std::move(*open_));
  open_.reset();
}

/// Counts what is recorded in its scope, and discards at its end what was not submitted: the pass
/// may end before the stream, also after an exception.
class VulkanStream::Counting {
 public:
  Counting(VulkanStream& stream, const CountedPass& pass) : stream_(stream) {
    stream_.counted_ = &pass;
  }
  ~Counting() {
    stream_.counted_ = nullptr;
    stream_.discard();
  }
  Counting(const Counting&) = delete;
  Counting& operator=(const Counting&) = delete;

 private:
  VulkanStream& stream_;
};

Result<void> VulkanStream::count(const CountedPass& pass,
                                 const std::function<Result<void>(Stream&)>& record,
                                 Deadline deadline) {
  return guarded(*context_, [&]() -> Result<void> {
    submit_batch();
    const std::uint64_t before = timeline_->submitted();
    Result<void> recorded;
    {
      const Counting counting(*this, pass);
      recorded = record(*this);
      const bool one = open_ && open_->commands.size() == 1 && open_->own.size() == 1 &&
                       timeline_->submitted() == before;
      if (recorded && !one) {
        recorded = Failure{Status::invalid_argument,
                           "only work of one submission without graphs can be counted",
                           {}};
      }
      if (recorded) submit_batch();
    }
    if (!recorded) return recorded;
    finish(deadline);
    return {};
  });
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
  // A command buffer that can't be reset is not reused. It lives as long as its pool.
  std::erase_if(open_->own, [this](VkCommandBuffer commands) {
    return context_->lost() || context_->vk().vkResetCommandBuffer(commands, 0) != VK_SUCCESS;
  });
  for (const auto& event : open_->events) event->timeline.reset();
  reuse(std::move(*open_));
  open_.reset();
  recorded_ = VK_NULL_HANDLE;
}

void VulkanStream::reuse(Batch batch) {
  idle_.insert(idle_.end(), batch.own.begin(), batch.own.end());
  batch.commands.clear();
  batch.own.clear();
  batch.keep.clear();
  batch.events.clear();
  batch.waits.clear();
  spare_.push_back(std::move(batch));
}

void VulkanStream::recycle() {
  if (in_flight_.empty()) return;
  const std::uint64_t completed = timeline_->completed();
  while (!in_flight_.empty() && in_flight_.front().value <= completed) {
    reuse(std::move(in_flight_.front()));
    in_flight_.pop_front();
  }
}

}  // namespace greta::device::vulkan
