#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device {

/// How a program ended, and what it wrote.
struct ProcessOutcome {
  int exit_code = 0;       ///< 128 + the signal's number where a signal ended it
  int signal = 0;          ///< 0: it exited
  bool timed_out = false;  ///< it was killed because its time was up
  std::string output;      ///< standard output
  std::string errors;      ///< standard error

  bool ok() const { return exit_code == 0 && !timed_out; }
  /// "exited with 1", "was killed by signal 6 (Aborted)", "was killed after 120 s".
  std::string how_it_ended(std::chrono::nanoseconds deadline) const;
  /// What it wrote to standard error last, one line; empty where it wrote nothing.
  std::string last_error_line() const;
};

/// "signal 9 (Killed)"
std::string signal_text(int signal);

/// Runs a program, found on PATH where its name has no slash, with `input` as its standard input;
/// it is killed, with the processes it started, after `deadline`, and when this thread ends. Fails
/// with `unavailable` when it can't be started. Thread-safe.
Result<ProcessOutcome> run_process(const std::vector<std::string>& command,
                                   const std::string& input, std::chrono::nanoseconds deadline);

}  // namespace greta::device
