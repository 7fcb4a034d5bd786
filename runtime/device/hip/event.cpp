#include "runtime/device/hip/event.hpp"

namespace greta::device::hip {

namespace {

EventHandle make_event(const std::shared_ptr<Context>& context) {
  hipEvent_t handle = nullptr;
  context->check(context->functions().hipEventCreateWithFlags(&handle, hipEventDefault),
                 "hipEventCreateWithFlags");
  return {context, handle};
}

void check_reached(const HipEvent& event) {
  if (event.recording()->state != Recording::State::submitted) {
    throw Refusal(Status::invalid_argument, "the event was not recorded and submitted");
  }
  if (!event.reached()) {
    throw Refusal(Status::invalid_argument, "the event has not been reached yet");
  }
}

}  // namespace

HipEvent::HipEvent(const std::shared_ptr<Context>& context)
    : context_(context), recording_(std::make_shared<Recording>()) {
  recording_->handle = make_event(context);
}

bool HipEvent::reached() const {
  if (recording_->state != Recording::State::submitted) return false;
  const hipError_t error = context_->functions().hipEventQuery(recording_->handle.get());
  if (error == hipErrorNotReady) return false;
  context_->check(error, "hipEventQuery");
  return true;
}

const HipEvent& checked_event(const Context& context, const Event& event) {
  const auto* const known = dynamic_cast<const HipEvent*>(&event);
  if (known == nullptr || known->context() != &context) {
    throw Refusal(Status::invalid_argument, "the event belongs to another device");
  }
  return *known;
}

double elapsed_us(const HipEvent& start, const HipEvent& stop) {
  check_reached(start);
  check_reached(stop);
  if (&start == &stop) return 0;
  float milliseconds = 0;
  start.context()->check(
      start.context()->functions().hipEventElapsedTime(
          &milliseconds, start.recording()->handle.get(), stop.recording()->handle.get()),
      "hipEventElapsedTime");
  return double{milliseconds} * 1000;
}

}  // namespace greta::device::hip
