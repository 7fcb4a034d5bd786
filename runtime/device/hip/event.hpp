#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/hip/context.hpp"

namespace greta::device::hip {

using EventHandle = Handle<hipEvent_t, &Functions::hipEventDestroy>;

/// The place where an event was last recorded. The stream's commands hold it as well, to keep the
/// handle alive and to reset the recording when they are discarded.
struct Recording {
  enum class State { never, recorded, submitted };

  EventHandle handle;
  State state = State::never;
  std::uint64_t stream = 0;  ///< number of the stream
};

class HipEvent final : public Event {
 public:
  explicit HipEvent(const std::shared_ptr<Context>& context);

  const Context* context() const { return context_.get(); }
  const std::shared_ptr<Recording>& recording() const { return recording_; }
  /// Whether the device has reached the event's last recording. Throws Refusal.
  bool reached() const;

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Recording> recording_;
};

/// Returns the event as a HipEvent. Throws `invalid_argument` for another device's event.
const HipEvent& checked_event(const Context& context, const Event& event);

/// Returns the device time between two events, in microseconds. Throws `invalid_argument` for
/// events that were not recorded, submitted and reached.
double elapsed_us(const HipEvent& start, const HipEvent& stop);

}  // namespace greta::device::hip
