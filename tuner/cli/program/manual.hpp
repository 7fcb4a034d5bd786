#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

/// Returns a manual page of section 1 in the macros of man(7): the summary, every command with its
/// options, and the epilogue of --help. `app` contains all commands of the tool; hidden ones are
/// omitted.
std::string manual_page(const CLI::App& app);

/// Returns a completion script for commands and options for "bash", "zsh" or "fish"; other words
/// complete to files. Throws CommandError for another shell.
std::string completion(const CLI::App& app, const std::string& shell);

}  // namespace greta::tuner::cli
