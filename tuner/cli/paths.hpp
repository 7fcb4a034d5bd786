#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

// The only place that reads the environment.

/// $XDG_CACHE_HOME/greta, else ~/.cache/greta.
std::filesystem::path default_cache_directory();
/// $XDG_DATA_HOME/greta/tuned.db, else ~/.local/share/greta/tuned.db.
std::filesystem::path default_database();
/// Home folders of this user: $HOME, and what the system says.
std::vector<std::string> home_directories();
/// The user's name as the system says it; may be empty.
std::string user_name();

}  // namespace greta::tuner::cli
