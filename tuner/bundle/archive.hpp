#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A file of an archive. Its path has parts of at most 100 bytes below a folder of at most 155.
struct ArchiveFile {
  std::string path;
  std::string contents;
};

/// Whether an archive can be made: nothing has its name, and files can be made in its folder. Fails
/// with `invalid_argument`, and with `io`.
Result<void> check_archive(const std::filesystem::path& file);

/// Writes files as a tar archive (POSIX ustar) in gzip's format. They belong to nobody: there are
/// no names and no numbers of users. The file is there when all of it is written, and takes no
/// other's place. `seconds`: since 1970, when they were made. Failures as check_archive().
Result<void> write_archive(const std::filesystem::path& file, const std::vector<ArchiveFile>& files,
                           std::int64_t seconds);

}  // namespace greta::tuner
