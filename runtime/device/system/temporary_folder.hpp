#pragma once

#include <filesystem>
#include <string_view>

#include "runtime/device/result.hpp"

namespace greta::device {

/// A new folder for temporary files, which is removed with its contents at the end.
class TemporaryFolder {
 public:
  /// Makes a folder PREFIX-XXXXXX that only this user can read, below the folder for temporary
  /// files or below `parent`. Fails with `io`.
  static Result<TemporaryFolder> make(std::string_view prefix,
                                      const std::filesystem::path& parent = {});
  TemporaryFolder(TemporaryFolder&& other) noexcept;
  TemporaryFolder& operator=(TemporaryFolder&& other) noexcept;
  ~TemporaryFolder();

  const std::filesystem::path& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::filesystem::path path) : path_(std::move(path)) {}
  std::filesystem::path path_;  // empty: moved from
};

}  // namespace greta::device
