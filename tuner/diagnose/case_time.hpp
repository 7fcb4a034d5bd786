#pragma once

#include <algorithm>
#include <chrono>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// The time for the runs of a case. A run begins only if it ends in time when it takes as long as
/// the longest one so far, since a deadline must not end the process that is to keep the case.
class CaseTime {
 public:
  using Clock = std::chrono::steady_clock;

  explicit CaseTime(Clock::duration most) : end_(Clock::now() + most) {}

  /// Returns whether there is time for this many more runs.
  bool has_room(int runs = 1) const { return Clock::now() + runs * longest_ < end_; }
  /// Calls `run` and remembers how long it takes.
  template <class Run>
  auto timed(const Run& run) {
    const auto begin = Clock::now();
    auto result = run();
    longest_ = std::max(longest_, Clock::now() - begin);
    return result;
  }

 private:
  Clock::time_point end_;
  Clock::duration longest_{};
};

}  // namespace greta::tuner
