#include "runtime/pipeline/compute/timing.hpp"

#include <utility>

namespace greta::runtime {

Result<std::size_t> OperationTimer::record(Device& device, Stream& stream) {
  if (used_ == events_.size()) {
    auto event = device.create_event();
    if (!event) return event.failure();
    events_.push_back(*std::move(event));
  }
  if (auto done = stream.record(*events_[used_]); !done) return done.failure();
  return used_++;
}

Result<void> OperationTimer::start(Device& device, Stream& stream) {
  const auto event = record(device, stream);
  if (!event) return event.failure();
  start_ = *event;
  return {};
}

Result<void> OperationTimer::stop(Device& device, Stream& stream,
                                  const PreparedOperation* operation) {
  const auto event = record(device, stream);
  if (!event) return event.failure();
  timed_.push_back({operation, start_, *event});
  return {};
}

Result<void> OperationTimer::collect(Device& device) {
  for (const Timed& timed : timed_) {
    if (timed.operation == nullptr) continue;
    const auto us = device.elapsed_us(*events_[timed.start], *events_[timed.stop]);
    if (!us) return us.failure();
    timed.operation->counts.device_us += *us;
    ++timed.operation->counts.timed_runs;
  }
  forget();
  return {};
}

}  // namespace greta::runtime
