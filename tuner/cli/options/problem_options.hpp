#pragma once

#include <CLI/CLI.hpp>

#include "kernels/model/problem_rules.hpp"
#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Calls `add`, which adds the options of the description in `file`. Throws CommandError where a
/// dimension has the name of another option.
void refuse_names_of_options(const std::string& file, const std::function<void()>& add);

/// Adds an operation's dimensions, types and attributes to a subcommand as text, which the catalog
/// converts to a problem. `request` must outlive the subcommand.
void add_problem_options(CLI::App& command, const Operation& operation, ProblemRequest& request);

/// Returns a typical problem as words of a command line: "softmax --rows 64 --cols 1000".
std::string example_problem(const Operation& operation, const std::string& name);

/// Returns the option of a dimension, an attribute or a type: "--kv-heads" for kv_heads.
std::string option_of(std::string_view field);
/// Returns the error of an invalid problem with the option's name.
CommandError bad_option(const Failure& failure);

}  // namespace greta::tuner::cli
