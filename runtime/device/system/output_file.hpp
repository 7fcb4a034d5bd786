#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::device {

/// Writes a file, or replaces one, so that readers find the old or the new content and never a part
/// of it: the content gets its name when it is complete. Several threads and processes may replace
/// a file at once; one of them is the last. Fails with `io` and the message "PATH: can't be
/// written: why", and leaves an existing file as it was and nothing beside it. The folder must
/// exist.
Result<void> replace_file(const std::filesystem::path& path, std::string_view content);

}  // namespace greta::device
