#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>

#include "runtime/device/hip/host/executor.hpp"

namespace greta::device::hip::host {

/// The first failure on a device, which sticks to it: no command does anything after it.
class Failed {
 public:
  explicit operator bool() const { return failed_; }
  void set(Fault fault);
  Fault get() const;

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  Fault fault_;
};

/// What a command may need to know of where it runs.
struct Execution {
  std::shared_ptr<Failed> failed;      ///< the device's
  std::atomic<bool> cancelled{false};  ///< the stream is given up

  bool over() const { return cancelled || *failed; }
};

/// Ends early and does nothing once the execution is over.
using Command = std::function<void(Execution&)>;

/// Runs commands in order on an OS thread of its own, which ends with the last of them.
class Queue {
 public:
  explicit Queue(std::shared_ptr<Failed> failed);
  /// What was pushed is still done, unless it is cancelled.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(Command command);
  bool idle() const;
  /// Ends the command that runs, and drops the others and all that come.
  void cancel();
  /// False when the deadline has passed.
  bool wait_idle(std::chrono::nanoseconds deadline) const;

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

/// A point in the order of a queue.
class Marker {
 public:
  /// A new recording; its number.
  std::uint64_t start();
  void reach(std::uint64_t number);
  /// Whether the last recording was reached; nothing when there was none.
  std::optional<bool> reached() const;
  std::uint64_t last() const;
  /// Waits until recording `number` is reached or the execution is over.
  void wait(std::uint64_t number, const Execution& execution) const;
  std::chrono::steady_clock::time_point time() const;

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::uint64_t started_ = 0, reached_ = 0;
  std::chrono::steady_clock::time_point time_;
};

}  // namespace greta::device::hip::host
