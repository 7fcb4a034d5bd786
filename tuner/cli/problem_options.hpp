#pragma once

#include <CLI/CLI.hpp>

#include "kernels/catalog.hpp"

namespace greta::tuner::cli {

/// Adds an operation's dimensions, types and attributes to a subcommand, as text; the catalog turns
/// them into a problem. `request` must live as long as the command.
void add_problem_options(CLI::App& command, const KernelTemplate& kernel_template,
                         ProblemRequest& request);

}  // namespace greta::tuner::cli
