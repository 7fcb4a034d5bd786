#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Exit codes of every tool.
enum ExitCode {
  exit_done = 0,
  exit_failed = 1,
  exit_usage = 2,
  exit_no_device = 3,
  exit_regression = 4
};

/// Ends a command with a one-line message and an exit code.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// The chosen action of the command line; returns the exit code.
using Action = std::function<int()>;

/// One of GRETA's programs: a list of commands.
struct Tool {
  std::string name;      ///< "greta-tune"
  std::string summary;   ///< purpose, for --help
  std::string examples;  ///< epilogue of --help
  /// Adds every command; the chosen one sets the action.
  std::function<void(CLI::App& app, Action& action)> add_commands;
  /// Whether a command is required. If not, add_commands() sets the default action, whose options
  /// are the program's.
  bool needs_command = true;
  /// Options whose value may be any text, including none and text that begins with dashes.
  std::vector<std::string> text_options{};
};

/// Implements a program's main(): parses the command line, runs the chosen action, and reports
/// every failure as one line on standard error that begins with the tool's name.
int run_tool(const Tool& tool, int argc, char** argv);

/// Passes each warning of the lower layers to a function as well, while it exists.
class AlsoWarn {
 public:
  explicit AlsoWarn(std::function<void(const std::string& line)> warn);
  ~AlsoWarn();
  AlsoWarn(const AlsoWarn&) = delete;
  AlsoWarn& operator=(const AlsoWarn&) = delete;
};

/// Adds the command that shows winners by card.
void add_show_command(CLI::App& app, Action& action);

/// Adds --templates DIR to a command: a folder of kernel sources that replace the built-in ones.
void add_templates_option(CLI::App& command);
/// Returns the command line with which a tool starts itself as a worker process, with the same
/// templates.
std::vector<std::string> worker_command();
/// Adds the hidden command for worker processes; see tuner/evaluate/worker.hpp.
void add_worker_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
