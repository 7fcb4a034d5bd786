#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/device/layers.hpp"

namespace greta::tuner::model {

/// A stop token that is set when another one is, and when a time has come. What it stops ends
/// within a part of a second, also while a kernel, a compiler or a reference runs.
class TimedStop {
 public:
  using Clock = std::chrono::steady_clock;

  TimedStop(const std::atomic<bool>& stop, Clock::time_point end)
      : thread_([this, &stop, end](const std::stop_token& ended) {
          constexpr std::chrono::milliseconds look{20};
          while (!ended.stop_requested() && !token_) {
            if (stop || Clock::now() >= end) token_ = true;
            std::this_thread::sleep_for(look);
          }
        }) {}

  const std::atomic<bool>& token() const { return token_; }

 private:
  std::atomic<bool> token_{false};
  std::jthread thread_;  ///< ends before the token does
};

}  // namespace greta::tuner::model
