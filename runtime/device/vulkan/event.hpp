#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/device/vulkan/context.hpp"

namespace greta::device::vulkan {

/// A timeline semaphore. With each submission, a stream signals the next higher value.
class Timeline {
 public:
  explicit Timeline(const std::shared_ptr<Context>& context);

  VkSemaphore handle() const { return semaphore_.get(); }
  std::uint64_t submitted() const { return submitted_; }
  /// Returns the value that the next submission signals.
  std::uint64_t next() const { return submitted_ + 1; }
  void advance() { ++submitted_; }
  std::uint64_t completed() const;
  /// Waits until the semaphore reaches a value. Throws `timeout`.
  void wait(std::uint64_t value, Deadline deadline) const;

 private:
  std::shared_ptr<Context> context_;
  Handle<VkSemaphore, &VolkDeviceTable::vkDestroySemaphore> semaphore_;
  std::uint64_t submitted_ = 0;
};

/// Hands out timestamp queries, which are allocated in pools.
class QueryAllocator : public std::enable_shared_from_this<QueryAllocator> {
 public:
  struct Query {
    VkQueryPool pool = VK_NULL_HANDLE;
    std::uint32_t index = 0;
  };

  explicit QueryAllocator(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  /// Returns a query. It goes back to the allocator when its last owner releases it.
  std::shared_ptr<const Query> acquire();

 private:
  static constexpr std::uint32_t pool_size = 256;

  std::shared_ptr<Context> context_;
  std::vector<Handle<VkQueryPool, &VolkDeviceTable::vkDestroyQueryPool>> pools_;
  std::vector<Query> free_;
};

/// The place where an event was last recorded. The submission holds it as well, to keep the query
/// alive and to reset the recording when the submission is discarded.
struct Recording {
  std::shared_ptr<const QueryAllocator::Query> query;
  std::shared_ptr<Timeline> timeline;  ///< null until the event is recorded
  std::uint64_t value = 0;             ///< timeline value that marks the event as reached

  bool submitted() const { return timeline && timeline->submitted() >= value; }
};

class VulkanEvent final : public Event {
 public:
  VulkanEvent(std::shared_ptr<Context> context, std::shared_ptr<const QueryAllocator::Query> query)
      : context_(std::move(context)),
        recording_(std::make_shared<Recording>(Recording{std::move(query), nullptr, 0})) {}

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<Recording>& recording() const { return recording_; }

  /// Prepares the event for being recorded in the next submission of `timeline`. Throws
  /// `invalid_argument` if an earlier recording has not completed.
  void restart(std::shared_ptr<Timeline> timeline);
  /// Returns the device's clock at the event, in ticks. Throws `invalid_argument` if the event has
  /// not been reached.
  std::uint64_t ticks() const;

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Recording> recording_;
};

/// Returns the event as a VulkanEvent. Throws `invalid_argument` for another device's event.
const VulkanEvent& checked_event(const Context& context, const Event& event);

}  // namespace greta::device::vulkan
