#pragma once

#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {

/// The program's own options: text from a model.
void add_generate_options(CLI::App& app, Action& action);
void add_bench_command(CLI::App& app, Action& action);

}  // namespace greta::tuner::cli
