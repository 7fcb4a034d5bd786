#pragma once

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Adds the options for text generation, which runs without a command.
void add_generate_options(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
