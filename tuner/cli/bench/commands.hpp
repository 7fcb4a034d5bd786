#pragma once

#include <string>
#include <vector>

#include "tuner/cli/bench/options.hpp"
#include "tuner/cli/program/described_command.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

// Each function adds options or a command of greta-bench and sets `action`.

/// Adds the options for running a preset, which happens without a command. `google_flags` are the
/// arguments for Google Benchmark.
void add_bench_options(CLI::App& app, Action& action, std::vector<std::string> google_flags);
/// Runs a preset, or the problem of the options. `exporting`: whether --export was given.
int run_bench(BenchOptions options, bool exporting);
/// Adds a command for each operation, which measures one problem in several ways.
void add_problem_commands(CLI::App& app, Action& action);
/// Adds `kernel FILE`, which does the same for a kernel that a file describes. Throws CommandError.
void add_own_problem_command(CLI::App& app, Action& action, const DescribedFile& description);
/// Adds the command that runs the same work for long.
void add_soak_command(CLI::App& app, Action& action, const DescribedFile& description);
void add_compare_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
/// Adds the hidden command with which doctor starts each check in a separate process.
void add_check_command(CLI::App& app, Action& action);
/// Adds the hidden commands that collect parts of a bundle in separate processes.
void add_bundle_commands(CLI::App& app, Action& action);
/// Adds the hidden command that takes blocks of samples in separate processes.
void add_blocks_command(CLI::App& app, Action& action);
void add_schema_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
