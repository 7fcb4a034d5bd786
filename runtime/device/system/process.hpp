#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// How a program ended, and its output.
struct ProcessOutcome {
  int exit_code = 0;       ///< 128 + the signal number if a signal ended it
  int signal = 0;          ///< 0: the program exited
  bool timed_out = false;  ///< killed because the deadline had passed
  bool stopped = false;    ///< killed because of a stop
  std::string output;      ///< standard output
  std::string errors;      ///< standard error

  bool killed() const { return timed_out || stopped; }
  bool ok() const { return exit_code == 0 && !killed(); }
  /// Returns `interrupted`, `timeout` or `crash`, for a program that must not end like this.
  Status failure() const;
  /// Returns "exited with 1", "was killed by signal 6 (Aborted)", "was killed after 120 s" or
  /// "was interrupted".
  std::string how_it_ended(std::chrono::nanoseconds deadline) const;
  /// Returns the last line that the program wrote to standard error, or an empty string.
  std::string last_error_line() const;
};

/// Returns text such as "signal 9 (Killed)".
std::string signal_text(int signal);

/// Is called with standard output that arrived, and may remove what it has read from it. It is also
/// called without new output, at least every 0.1 s if there is a `stop`.
using OutputReader = std::function<void(std::string& output)>;

/// Runs a program with `input` as its standard input. A name without a slash is searched for on
/// PATH. After `deadline`, or within 0.1 s after `stop` becomes true, the program is killed
/// together with the processes it started. It is also killed when the calling thread ends. Fails
/// with `unavailable` when it can't be started. Without `reader`, all output is in the outcome.
/// Thread-safe.
Result<ProcessOutcome> run_process(const std::vector<std::string>& command,
                                   const std::string& input, std::chrono::nanoseconds deadline,
                                   const std::atomic<bool>* stop = nullptr,
                                   const OutputReader& reader = {});

}  // namespace greta::device
