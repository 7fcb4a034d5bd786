#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// A timeline semaphore: a stream signals one more than before with each submission.
class Timeline {
 public:
  explicit Timeline(const std::shared_ptr<Context>& context);

  VkSemaphore handle() const { return semaphore_.get(); }
  std::uint64_t submitted() const { return submitted_; }
  /// The value that the next submission signals.
  std::uint64_t next() const { return submitted_ + 1; }
  void advance() { ++submitted_; }
  std::uint64_t completed() const;
  /// Waits for a value. Throws `timeout`.
  void wait(std::uint64_t value, Deadline deadline) const;

 private:
  std::shared_ptr<Context> context_;
  Handle<VkSemaphore, &VolkDeviceTable::vkDestroySemaphore> semaphore_;
  std::uint64_t submitted_ = 0;
};

/// Timestamp queries, handed out one by one from pools of many.
class QueryAllocator : public std::enable_shared_from_this<QueryAllocator> {
 public:
  struct Query {
    VkQueryPool pool = VK_NULL_HANDLE;
    std::uint32_t index = 0;
  };

  explicit QueryAllocator(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  /// The query returns to the allocator with its last owner.
  std::shared_ptr<const Query> acquire();

 private:
  static constexpr std::uint32_t pool_size = 256;

  std::shared_ptr<Context> context_;
  std::vector<Handle<VkQueryPool, &VolkDeviceTable::vkDestroyQueryPool>> pools_;
  std::vector<Query> free_;
};

/// Where an event was last recorded. Its submission holds it too: to keep the query, and to take
/// the recording back when it is discarded.
struct Recording {
  std::shared_ptr<const QueryAllocator::Query> query;
  std::shared_ptr<Timeline> timeline;  ///< none before the event was recorded
  std::uint64_t value = 0;             ///< of the timeline when the event has been reached

  bool submitted() const { return timeline && timeline->submitted() >= value; }
};

class VulkanEvent final : public Event {
 public:
  VulkanEvent(std::shared_ptr<Context> context, std::shared_ptr<const QueryAllocator::Query> query)
      : context_(std::move(context)),
        recording_(std::make_shared<Recording>(Recording{std::move(query), nullptr, 0})) {}

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<Recording>& recording() const { return recording_; }

  /// Readies the event for being recorded into the next submission of `timeline`.
  void restart(std::shared_ptr<Timeline> timeline);
  /// The device's clock at the event, in ticks.
  std::uint64_t ticks() const;

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Recording> recording_;
};

/// The event as one of this device. Throws `invalid_argument` for another device's event.
const VulkanEvent& checked_event(const Context& context, const Event& event);

}  // namespace greta::device::vulkan
