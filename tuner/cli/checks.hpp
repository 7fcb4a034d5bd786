#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner::cli {

// Options and problems, checked before anything is opened or written. Each throws CommandError with
// one line that names the option, the value and what is allowed.

Budget read_budget(const std::string& text);
/// MiB as bytes; 0 when the text is empty.
std::uint64_t read_flush(const std::string& text);
/// "local, random, …"
std::string names_of_strategies();

/// An existing file must be one of ours: rows are appended to it, never written over. `option`:
/// that names it.
void check_csv(const std::string& option, const std::filesystem::path& file);

/// Configurations that a user wants to be tried, as text in which any white space separates.
std::vector<Config> read_configs(const std::vector<std::string>& texts);

}  // namespace greta::tuner::cli
