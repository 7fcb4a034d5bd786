#pragma once

#include <string>
#include <utility>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// How a child process ended.
struct ChildOutcome {
  int exit_code = 0;
  int signal = 0;      ///< 0: it exited
  std::string output;  ///< standard output, if it was captured
};

/// Runs a program in place of this one: with the same streams, except that its standard output is
/// captured if `capture`. `variables` are added to its environment. It gets the signals SIGINT,
/// SIGTERM and SIGHUP that others send to this process; those of the terminal reach both anyway. It
/// is ended with the calling thread. Fails with `unavailable` if it can't be started.
Result<ChildOutcome> run_child(const std::vector<std::string>& command,
                               const std::vector<std::pair<std::string, std::string>>& variables,
                               bool capture);

}  // namespace greta::tuner
