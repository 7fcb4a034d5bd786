#pragma once

#include <string>
#include <vector>

#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {

// Each adds options or a command of greta-bench and sets `action`.

/// What is done without a command: running a preset. `google_flags`: the words of the command line
/// that are Google Benchmark's.
void add_bench_options(CLI::App& app, Action& action, std::vector<std::string> google_flags);
void add_compare_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
/// The hidden command by which doctor starts each check as a process of its own.
void add_check_command(CLI::App& app, Action& action);
/// The hidden commands by which a bundle's parts are found in processes of their own.
void add_bundle_commands(CLI::App& app, Action& action);
/// The hidden command by which benchmarks of calls are measured in processes of their own.
void add_calls_command(CLI::App& app, Action& action);
void add_schema_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
