#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Receives the runtime's counters and timings. Functions are called from any thread, also
/// concurrently.
class TelemetrySink {
 public:
  using Clock = std::chrono::steady_clock;
  virtual ~TelemetrySink() = default;
  /// Adds to a counter. `name` is a string literal, e.g. "device.launches".
  virtual void count(const char* name, std::uint64_t amount) = 0;
  virtual void span(const char* name, Clock::time_point start, Clock::duration duration) = 0;
};

namespace telemetry {

namespace detail {
inline std::atomic<TelemetrySink*> current{nullptr};
}

/// Turns telemetry on, or off with nullptr. The sink must outlive every call that may still report
/// to it.
inline void set_sink(TelemetrySink* sink) {
  detail::current.store(sink, std::memory_order_release);
}

/// Returns the sink, or nullptr when telemetry is off. In that case telemetry costs one relaxed
/// load.
inline TelemetrySink* sink() {
  TelemetrySink* const found = detail::current.load(std::memory_order_relaxed);
  if (found != nullptr) std::atomic_thread_fence(std::memory_order_acquire);
  return found;
}

inline void count(const char* name, std::uint64_t amount = 1) {
  if (TelemetrySink* const to = sink()) to->count(name, amount);
}

/// Reports the time between its construction and its destruction.
class Span {
 public:
  explicit Span(const char* name) : name_(name), sink_(sink()) {
    if (sink_ != nullptr) start_ = TelemetrySink::Clock::now();
  }
  ~Span() {
    if (sink_ != nullptr) sink_->span(name_, start_, TelemetrySink::Clock::now() - start_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  const char* name_;
  TelemetrySink* sink_;
  TelemetrySink::Clock::time_point start_;
};

}  // namespace telemetry

}  // namespace greta::device
