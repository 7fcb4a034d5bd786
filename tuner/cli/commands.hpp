#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <stdexcept>
#include <string>

namespace greta {

/// Exit codes of every tool.
enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2, exit_no_device = 3 };

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

// Each adds one subcommand (or one for each operation of the catalog) and sets `action` when it is
// chosen.
void add_devices_command(CLI::App& app, Action& action);
void add_operations_command(CLI::App& app, Action& action);
void add_tune_commands(CLI::App& app, Action& action);
void add_preset_command(CLI::App& app, Action& action);
void add_show_command(CLI::App& app, Action& action);
void add_verify_command(CLI::App& app, Action& action);
void add_compile_command(CLI::App& app, Action& action);
void add_run_case_command(CLI::App& app, Action& action);
void add_worker_command(CLI::App& app, Action& action);

}  // namespace greta
