#pragma once

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"
#include "runtime/device/system/process.hpp"

namespace greta::tuner {

/// Returns whether a failure of RemoteMachine::run() may pass: not one of the login or of the
/// script.
bool is_lost_line(const Failure& failure);

/// A machine that the system's ssh reaches.
class RemoteMachine {
 public:
  /// `ssh` is the program and its options, e.g. {"ssh", "-p", "2222"}. It never asks for passwords.
  RemoteMachine(std::string host, std::vector<std::string> ssh);

  const std::string& host() const { return host_; }

  /// Runs a script of sh there and returns its standard output. `input` is its standard input. The
  /// script passes through the user's login shell, which may be any: it has no single quotes,
  /// backslashes or exclamation marks, and its lines are joined with spaces. Fails with
  /// `unavailable` if the machine can't be reached or refuses the login, and with `io` if the
  /// script fails; a failure is one line with the host's name.
  Result<std::string> run(const std::string& script, const std::string& input,
                          std::chrono::seconds deadline,
                          const std::atomic<bool>* stop = nullptr) const;

  /// Runs a script and passes its output to `reader`, which is also called every 0.1 s. Returns
  /// when the script ends or the line is lost.
  Result<device::ProcessOutcome> follow(const std::string& script,
                                        const device::OutputReader& reader) const;

 private:
  std::vector<std::string> command(const std::string& script) const;
  Failure failure_of(const device::ProcessOutcome& outcome) const;

  std::string host_;
  std::vector<std::string> ssh_;
};

}  // namespace greta::tuner
