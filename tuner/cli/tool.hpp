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

/// Ends a command with one line and an exit code.
class CommandError : public std::runtime_error {
 public:
  CommandError(ExitCode code, const std::string& message)
      : std::runtime_error(message), code_(code) {}
  ExitCode code() const { return code_; }

 private:
  ExitCode code_;
};

/// What the command line chose to do; returns the exit code.
using Action = std::function<int()>;

/// One of GRETA's programs: a list of commands.
struct Tool {
  std::string name;      ///< "greta-tune"
  std::string summary;   ///< what --help says it is for
  std::string examples;  ///< what it ends with
  /// Adds every command; the chosen one sets the action.
  std::function<void(CLI::App& app, Action& action)> add_commands;
  /// Whether a command must be named. Where not, add_commands() sets the action that is done
  /// without one, whose options are the program's own.
  bool needs_command = true;
  /// Options whose value may be any text, one that begins with dashes included.
  std::vector<std::string> text_options{};
};

/// The whole of a program's main(): parses the command line, runs what it chose, and tells every
/// failure in one line of standard error that begins with the tool's name.
int run_tool(const Tool& tool, int argc, char** argv);

/// Adds the command that shows winners by card.
void add_show_command(CLI::App& app, Action& action);

/// Adds --templates DIR to a command: kernel sources of a folder in place of the built-in ones.
void add_templates_option(CLI::App& command);
/// The command line by which a tool starts itself as its own worker process, with the same
/// templates.
std::vector<std::string> worker_command();
/// Adds the hidden command by which a tool starts itself as its own worker process; see
/// tuner/evaluate/worker.hpp.
void add_worker_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
