#pragma once

#include <filesystem>
#include <string>

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Writes NAME.jsonc, a description with comments, and NAME.cu, its kernel, which can be tuned as
/// they are, to a folder, and the schema of descriptions, which editors read, if it is not there.
/// Throws CommandError for other names than C has, and for files that exist.
void write_new_kernel(const std::string& name, const std::filesystem::path& folder);

}  // namespace greta::tuner::cli
