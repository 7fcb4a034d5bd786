#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "tuner/cli/program/tool.hpp"

namespace greta::tuner::cli {

/// Languages of new kernels, the default first.
std::vector<std::string> new_kernel_languages();

/// Writes NAME.jsonc, a description with comments, and its kernel (NAME.cu, .hip or .comp), which
/// can be tuned as they are, to a folder, and the schema of descriptions, which editors read, if it
/// is not there. `language` is one of new_kernel_languages(). Returns the name of the kernel's
/// file. Throws CommandError for other names than C has, and for files that exist.
std::string write_new_kernel(const std::string& name, const std::string& language,
                             const std::filesystem::path& folder);

}  // namespace greta::tuner::cli
