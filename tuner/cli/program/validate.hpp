#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

/// --validate: runs a command again in a process in which Vulkan devices use the validation layer,
/// or under NVIDIA's compute-sanitizer, and counts what they say.
namespace greta::tuner::cli {

/// Adds --validate to a command that opens the devices named by `device`, as --device has them; no
/// name means every device of the machine. `device` must live as long as the command.
void add_validate_option(CLI::App& command, const std::string& device);

/// Returns whether the parsed command line has --validate.
bool wants_validation();

/// Runs this command line without --validate in a child process, with checks by what each of its
/// devices has. All processes that the child starts are checked. Prints the reports by kind to
/// standard error and, with --json, adds them to the child's object as "validation". Returns the
/// child's exit code, or exit_failed where that is 0 and there are errors. Throws CommandError if a
/// device has neither a validation layer nor compute-sanitizer. `text_options` as in Tool.
int run_validated(const std::vector<std::string>& text_options);

/// Begins the checks in a process that run_validated() started, directly or not. Throws Error if it
/// can't.
void validate_if_asked();

}  // namespace greta::tuner::cli
