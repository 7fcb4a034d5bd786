#pragma once

#include <cstdint>
#include <memory>

#include "runtime/device/hip/context.hpp"

namespace greta::device::hip {

using EventHandle = Handle<hipEvent_t, &Functions::hipEventDestroy>;

/// Where an event was last recorded. The commands of its stream hold it too: to keep the handle,
/// and to take the recording back when they are discarded.
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
  /// Whether the device has come to where the event was last recorded. Throws Refusal.
  bool reached() const;

 private:
  std::shared_ptr<Context> context_;
  std::shared_ptr<Recording> recording_;
};

/// The event as one of this device. Throws `invalid_argument` for another device's event.
const HipEvent& checked_event(const Context& context, const Event& event);

/// Device time between two events, in microseconds. Throws `invalid_argument` for events that were
/// not recorded, submitted and reached.
double elapsed_us(const HipEvent& start, const HipEvent& stop);

}  // namespace greta::device::hip
