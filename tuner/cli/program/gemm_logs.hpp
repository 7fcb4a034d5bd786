#pragma once

#include <filesystem>
#include <string>

#include "tuner/interchange/gemm_log.hpp"

namespace greta::tuner::cli {

/// Reads a log of GEMMs. Throws CommandError for a file that can't be read, that is of no known
/// tool, or of which no row can be converted.
GemmLog load_gemm_log(const std::filesystem::path& file);

/// Writes the problems of a log as a preset. `option` names the file in messages. Throws
/// CommandError if it exists or can't be written.
void write_preset(const std::string& option, const std::filesystem::path& file, const GemmLog& log);
/// Throws CommandError if the file exists.
void check_new_file(const std::string& option, const std::filesystem::path& file);

}  // namespace greta::tuner::cli
