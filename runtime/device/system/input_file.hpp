#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/device/result.hpp"

namespace greta::device {

/// A regular file, open for reading. GRETA opens all files that it reads with this class, except
/// for databases, which SQLite opens.
class InputFile {
 public:
  /// Opens a file. Fails with `io` and the message "PATH: why" if the file does not exist, can't be
  /// read, or is not a regular file: a folder, a FIFO, a socket, a device. Never blocks.
  static Result<InputFile> open(const std::filesystem::path& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int descriptor() const { return descriptor_; }
  /// The size when the file was opened; 0 for files of /proc, which report no size.
  std::uint64_t size() const { return size_; }

  /// Returns the file's content from the start. Fails with `invalid_argument` if there are more
  /// than `most_bytes`, before reading if the size is known. Fails with `io` if it can't be read.
  Result<std::string> read(std::uint64_t most_bytes) const;

 private:
  InputFile(std::filesystem::path path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  Failure failure(const std::string& why) const;

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_;
};

/// Returns the whole content of a file of at most `most_bytes` bytes. Fails as InputFile does.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes);

/// Returns the content of a file of /proc or /sys, or an empty string if it can't be read. Content
/// after the first 64 MiB is left out, with a warning.
std::string read_system_file(const std::filesystem::path& path);

}  // namespace greta::device
