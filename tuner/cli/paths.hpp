#pragma once

#include <filesystem>

namespace greta {

// The only place that reads the environment.

/// $XDG_CACHE_HOME/greta, else ~/.cache/greta.
std::filesystem::path default_cache_directory();
/// $XDG_DATA_HOME/greta/tuned.db, else ~/.local/share/greta/tuned.db.
std::filesystem::path default_database();

}  // namespace greta
