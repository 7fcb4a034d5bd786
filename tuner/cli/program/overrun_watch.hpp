#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Ends the process if it exists for longer than a given time, also while a call of a driver does
/// not return. `last_words` are said before, on a separate thread; exit_failed is the exit code.
class OverrunWatch {
 public:
  OverrunWatch(std::chrono::duration<double> most, std::function<void()> last_words);
  ~OverrunWatch();
  OverrunWatch(const OverrunWatch&) = delete;
  OverrunWatch& operator=(const OverrunWatch&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool ended_ = false;
  std::jthread thread_;  ///< last: uses the other members
};

}  // namespace greta::tuner::cli
