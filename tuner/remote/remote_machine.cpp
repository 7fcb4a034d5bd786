#include "tuner/remote/remote_machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

namespace greta::tuner {
namespace {

constexpr int lost_line = 255;  // ssh's own exit code
constexpr const char* refuses = "refuses the login";
constexpr std::chrono::hours longest{24 * 365};

/// The line of a program's errors that says most.
std::string line_of(const device::ProcessOutcome& outcome) {
  const auto shortened = [](std::string line) {
    if (!line.empty() && line.back() == '\r') line.pop_back();  // as ssh ends some of its lines
    return line;
  };
  std::istringstream lines(outcome.errors);
  for (std::string line; std::getline(lines, line);) {
    for (const char* const part : {"Permission denied", "No space left", "Could not resolve"}) {
      if (line.find(part) != std::string::npos) return shortened(line);
    }
  }
  return shortened(outcome.last_error_line());
}

std::string joined(std::string script) {
  std::replace(script.begin(), script.end(), '\n', ' ');
  return script;
}

}  // namespace

bool is_lost_line(const Failure& failure) {
  return failure.status == Status::unavailable &&
         failure.message.find(refuses) == std::string::npos;
}

RemoteMachine::RemoteMachine(std::string host, std::vector<std::string> ssh)
    : host_(std::move(host)), ssh_(std::move(ssh)) {}

std::vector<std::string> RemoteMachine::command(const std::string& script) const {
  std::vector<std::string> words = ssh_;
  for (const char* const option : {"BatchMode=yes", "ConnectTimeout=15", "ServerAliveInterval=5",
                                   "ServerAliveCountMax=3", "LogLevel=ERROR"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {"-T", "--", host_, "exec sh -c '" + joined(script) + "'"});
  return words;
}

Failure RemoteMachine::failure_of(const device::ProcessOutcome& outcome) const {
  if (outcome.stopped) return {Status::interrupted, host_ + ": interrupted", {}};
  if (outcome.timed_out) return {Status::unavailable, host_ + ": does not answer", {}};
  const std::string line = line_of(outcome);
  if (outcome.exit_code == lost_line) {
    const bool refused = line.find("Permission denied") != std::string::npos;
    return {Status::unavailable,
            fmt::format("{}: {}: {}", host_, refused ? refuses : "can't be reached",
                        line.empty() ? "ssh gives no reason" : line),
            {}};
  }
  return {Status::io, fmt::format("{}: {}", host_, line.empty() ? "a script failed" : line), {}};
}

Result<std::string> RemoteMachine::run(const std::string& script, const std::string& input,
                                       std::chrono::seconds deadline,
                                       const std::atomic<bool>* stop) const {
  auto outcome = device::run_process(command(script), input, deadline, stop);
  if (!outcome) return outcome.failure();
  if (!outcome->ok()) return failure_of(*outcome);
  return std::move(outcome->output);
}

Result<device::ProcessOutcome> RemoteMachine::follow(const std::string& script,
                                                     const device::OutputReader& reader) const {
  static const std::atomic<bool> never{false};  // makes the reader's turns regular
  return device::run_process(command(script), "", longest, &never, reader);
}

}  // namespace greta::tuner
