#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner::cli {

// The only functions that read the environment.

/// Returns $XDG_CACHE_HOME/greta, else ~/.cache/greta.
std::filesystem::path default_cache_directory();
/// Returns $XDG_DATA_HOME/greta/tuned.db, else ~/.local/share/greta/tuned.db.
std::filesystem::path default_database();
/// Returns $XDG_CONFIG_HOME/greta/kernels, else ~/.config/greta/kernels: descriptions of kernels
/// that commands know by name.
std::filesystem::path folder_of_kernels();
/// Returns $GRETA_SHIPPED, else shipped_folder() of this installation: the folder of the databases
/// that GRETA ships.
std::filesystem::path folder_of_shipped();
/// Returns the home folders of this user: $HOME and the system's entry.
std::vector<std::string> home_directories();
/// Returns the user's name as the system reports it; may be empty.
std::string user_name();

/// Returns whether text is shown as UTF-8, by LC_ALL, LC_CTYPE and LANG.
bool utf8_locale();

/// Throws CommandError unless the folder of a file exists and can be written: a typo must not
/// create folders. `option` names the file.
void check_folder(const std::string& option, const std::filesystem::path& file);

}  // namespace greta::tuner::cli
