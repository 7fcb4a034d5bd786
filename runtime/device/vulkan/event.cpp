#include "runtime/device/vulkan/event.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "runtime/device/telemetry.hpp"

namespace greta::device::vulkan {

Timeline::Timeline(const std::shared_ptr<Context>& context) : context_(context) {
  const VkSemaphoreTypeCreateInfo type{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
                                       .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE};
  const VkSemaphoreCreateInfo create{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                     .pNext = &type};
  semaphore_ = make<decltype(semaphore_), &VolkDeviceTable::vkCreateSemaphore>(context, create,
                                                                               "vkCreateSemaphore");
}

std::uint64_t Timeline::completed() const {
  std::uint64_t value = 0;
  check(context_->vk().vkGetSemaphoreCounterValue(context_->handle(), handle(), &value),
        "vkGetSemaphoreCounterValue");
  return value;
}

void Timeline::wait(std::uint64_t value, Deadline deadline) const {
  const telemetry::Span span("device.wait");
  const StallWatch watch(std::chrono::duration<double>(deadline).count());
  const VkSemaphore semaphore = handle();
  const VkSemaphoreWaitInfo info{.sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
                                 .semaphoreCount = 1,
                                 .pSemaphores = &semaphore,
                                 .pValues = &value};
  const auto nanoseconds = static_cast<std::uint64_t>(std::max<Deadline::rep>(0, deadline.count()));
  const VkResult result = context_->vk().vkWaitSemaphores(context_->handle(), &info, nanoseconds);
  if (result == VK_TIMEOUT) {
    throw Refusal(Status::timeout,
                  fmt::format("the device did not finish within {:.6g} ms",
                              std::chrono::duration<double, std::milli>(deadline).count()));
  }
  check(result, "vkWaitSemaphores");
}

std::shared_ptr<const QueryAllocator::Query> QueryAllocator::acquire() {
  if (free_.empty()) {
    const VkQueryPoolCreateInfo create{.sType = VK_STRUCTURE_TYPE_QUERY_POOL_CREATE_INFO,
                                       .queryType = VK_QUERY_TYPE_TIMESTAMP,
                                       .queryCount = pool_size};
    pools_.push_back(
        make<Handle<VkQueryPool, &VolkDeviceTable::vkDestroyQueryPool>,
             &VolkDeviceTable::vkCreateQueryPool>(context_, create, "vkCreateQueryPool"));
    free_.reserve(pools_.size() * pool_size);
    for (std::uint32_t index = pool_size; index-- > 0;) {
      free_.push_back({pools_.back().get(), index});
    }
  }
  const Query query = free_.back();
  auto owned = std::shared_ptr<const Query>(
      new Query(query), [self = shared_from_this()](const Query* released) {
        self->free_.push_back(*released);  // can't throw: space is reserved
        delete released;
      });
  free_.pop_back();
  return owned;
}

void VulkanEvent::restart(std::shared_ptr<Timeline> timeline) {
  Recording& last = *recording_;
  if (last.timeline && (!last.submitted() || last.timeline->completed() < last.value)) {
    throw Refusal(Status::invalid_argument,
                  "the event is recorded again before its first recording has completed");
  }
  context_->vk().vkResetQueryPool(context_->handle(), last.query->pool, last.query->index, 1);
  last.value = timeline->next();
  last.timeline = std::move(timeline);
}

std::uint64_t VulkanEvent::ticks() const {
  if (!recording_->submitted()) {
    throw Refusal(Status::invalid_argument, "the event was not recorded and submitted");
  }
  // lavapipe waits for the whole device when a result that is not available yet is read.
  if (recording_->timeline->completed() < recording_->value) {
    throw Refusal(Status::invalid_argument, "the event has not been reached yet");
  }
  std::uint64_t ticks = 0;
  check(context_->vk().vkGetQueryPoolResults(context_->handle(), recording_->query->pool,
                                             recording_->query->index, 1, sizeof ticks, &ticks,
                                             sizeof ticks, VK_QUERY_RESULT_64_BIT),
        "vkGetQueryPoolResults");
  return ticks;
}

const VulkanEvent& checked_event(const Context& context, const Event& event) {
  const auto* const known = dynamic_cast<const VulkanEvent*>(&event);
  if (known == nullptr || known->context() != &context) {
    throw Refusal(Status::invalid_argument, "the event belongs to another device");
  }
  return *known;
}

}  // namespace greta::device::vulkan
