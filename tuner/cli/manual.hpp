#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// A manual page, section 1, in the macros of man(7): the summary, every command with its options,
/// and what --help ends with. `app` holds all commands of the tool; hidden ones are left out.
std::string manual_page(const CLI::App& app);

/// A script that completes commands and options for "bash", "zsh" or "fish"; files are completed
/// everywhere else. Throws CommandError for another shell.
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace greta::tuner::cli
