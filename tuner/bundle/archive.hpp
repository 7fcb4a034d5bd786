#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::tuner {

/// A file of an archive. Each component of its path has at most 100 bytes, and its folder at most
/// 155.
struct ArchiveFile {
  std::string path;
  std::string contents;
};

/// Checks that an archive can be created: the name is not in use, and its folder is writable. Fails
/// with `invalid_argument` or `io`.
Result<void> check_archive(const std::filesystem::path& file);

/// Writes files as a gzip-compressed tar archive (POSIX ustar) without user names and ids. The
/// archive appears when it is complete and never replaces a file. `seconds` is the modification
/// time since 1970. Fails like check_archive().
Result<void> write_archive(const std::filesystem::path& file, const std::vector<ArchiveFile>& files,
                           std::int64_t seconds);

}  // namespace greta::tuner
