#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "runtime/device/result.hpp"

namespace greta::device {

/// A regular file, open for reading. All files that GRETA reads are opened here, but for databases,
/// which SQLite opens.
class InputFile {
 public:
  /// Fails with `io`, "PATH: why" for people, where there is no such file, where it can't be read,
  /// and where it is no regular file: a folder, a FIFO, a socket, a device. Never waits for
  /// anybody.
  static Result<InputFile> open(const std::filesystem::path& path);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int descriptor() const { return descriptor_; }
  /// As it was when the file was opened; 0 for files of /proc, which have no size.
  std::uint64_t size() const { return size_; }

  /// Its bytes from the start. Fails where there are more than `most_bytes`, before they are read.
  Result<std::string> read(std::uint64_t most_bytes) const;

 private:
  InputFile(std::filesystem::path path, int descriptor, std::uint64_t size)
      : path_(std::move(path)), descriptor_(descriptor), size_(size) {}
  Failure failure(const std::string& why) const;

  std::filesystem::path path_;
  int descriptor_;
  std::uint64_t size_;
};

/// The whole of a file of at most `most_bytes` bytes. Fails as InputFile does.
Result<std::string> read_file(const std::filesystem::path& path, std::uint64_t most_bytes);

/// What the system says of itself in a file of /proc or /sys; empty where it says nothing. Of more
/// than 64 MiB the rest is left out, with a warning.
std::string read_system_file(const std::filesystem::path& path);

}  // namespace greta::device
