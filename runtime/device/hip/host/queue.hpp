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
#include <utility>
#include <vector>

#include "runtime/device/hip/host/executor.hpp"

namespace greta::device::hip::host {

/// The first failure on a device. It is sticky: no command does anything after it.
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

/// The state of a command's stream and device that the command may check.
struct Execution {
  std::shared_ptr<Failed> failed;      ///< the device's failure
  std::atomic<bool> cancelled{false};  ///< whether the stream's work was cancelled

  bool over() const { return cancelled || *failed; }
};

/// What a stream runs. It does nothing once the execution is over, and returns early if it is
/// running.
struct Command {
  using Launch = std::function<void(Execution&, Executor&, const std::function<void()>& earlier)>;

  template <typename Run>
  Command(Run its_run) : run(std::move(its_run)) {}  // NOLINT: any function is a command
  Command(Launch its_launch, bool may_overlap);

  std::function<void(Execution&)> run;
  Launch launch;          ///< of a kernel, by an executor (Executor::run); empty: something else
  bool overlaps = false;  ///< may begin before the launch ahead of it ends
};

/// Runs commands in order, but every other launch that may overlap what is ahead of it begins
/// first, as far as it does not wait for that. `turn` selects which. So launches overlap copies and
/// fills, too, which is more than GPUs do.
void run_graph(const std::vector<Command>& commands, Execution& execution, bool turn);

/// Runs commands in order on its own OS thread, which ends after the last command.
class Queue {
 public:
  explicit Queue(std::shared_ptr<Failed> failed);
  /// Commands that were pushed still run, unless they are cancelled.
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  void push(Command command);
  bool idle() const;
  /// Ends the running command, and drops all others and all later ones.
  void cancel();
  /// Returns false if the deadline has passed.
  bool wait_idle(std::chrono::nanoseconds deadline) const;

 private:
  struct State;
  static void work(const std::shared_ptr<State>& state);

  std::shared_ptr<State> state_;
};

/// A point in the order of a queue.
class Marker {
 public:
  /// Starts a new recording and returns its number.
  std::uint64_t start();
  void reach(std::uint64_t number);
  /// Returns whether the last recording was reached, or nothing if there was none.
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
