#pragma once

#include <CLI/CLI.hpp>

#include "kernels/problems.hpp"
#include "tuner/cli/tool.hpp"

namespace greta::tuner::cli {

/// Adds an operation's dimensions, types and attributes to a subcommand, as text; the catalog turns
/// them into a problem. `request` must live as long as the command.
void add_problem_options(CLI::App& command, const Operation& operation, ProblemRequest& request);

/// The option of a dimension, an attribute or a type: "--kv-heads" for kv_heads.
std::string option_of(std::string_view field);
/// The error of a problem that can't be as options say it, with the option's name.
CommandError bad_option(const Failure& failure);

}  // namespace greta::tuner::cli
