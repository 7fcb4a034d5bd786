#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/remote/remote_run.hpp"

namespace greta::tuner::cli {

/// Splits a command line at spaces, with quotes as in a shell.
std::vector<std::string> words_of(const std::string& line);

/// Converts a command for another machine: files that are read are taken along, and files that are
/// written come back. `--db FILE` names the database here, and is removed. Throws CommandError for
/// commands that run nowhere else, and for folders.
RemoteCommand remote_command(const std::vector<std::string>& words,
                             std::filesystem::path& database);

}  // namespace greta::tuner::cli
