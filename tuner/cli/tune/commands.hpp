#pragma once

#include "tuner/cli/program/described_command.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

// Each function adds one subcommand (or one per operation of the catalog) and sets `action` when it
// is chosen.
void add_devices_command(CLI::App& app, Action& action);
void add_operations_command(CLI::App& app, Action& action);
void add_tune_command(CLI::App& app, Action& action, const Operation& operation);
void add_tune_commands(CLI::App& app, Action& action);
/// Adds `kernel FILE`: the options are those of the problem that this file describes. Throws
/// CommandError.
void add_kernel_command(CLI::App& app, Action& action, const DescribedFile& description);
void add_preset_command(CLI::App& app, Action& action);
void add_capture_command(CLI::App& app, Action& action);
void add_from_capture_command(CLI::App& app, Action& action);
void add_model_command(CLI::App& app, Action& action);
/// The commands `verify` and `compile` have the operations of the catalog, or the one that
/// `description` describes, if there is one. Throw CommandError.
void add_verify_command(CLI::App& app, Action& action, const DescribedFile& description);
void add_compile_command(CLI::App& app, Action& action, const DescribedFile& description);
/// Like verify and compile.
void add_profile_command(CLI::App& app, Action& action, const DescribedFile& description);
void add_remote_command(CLI::App& app, Action& action);
void add_replay_command(CLI::App& app, Action& action);
void add_prior_command(CLI::App& app, Action& action);
void add_run_case_command(CLI::App& app, Action& action);
void add_diagnose_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
