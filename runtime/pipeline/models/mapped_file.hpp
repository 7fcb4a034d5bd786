#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/device/layers.hpp"

namespace greta::runtime {

/// Size limits in bytes of a model's JSON files (configuration and tensor list) and of its
/// tokenizer.
inline constexpr std::uint64_t most_model_json_bytes = std::uint64_t{16} << 20;
inline constexpr std::uint64_t most_tokenizer_bytes = std::uint64_t{256} << 20;

/// A regular file that is mapped into memory for reading; pages are read on first access. The file
/// must not be truncated meanwhile: access beyond the new end raises SIGBUS.
class MappedFile {
 public:
  /// Throws Error (`io`) for a file that can't be read, is not a regular file, or is larger than
  /// `most_bytes`.
  static std::shared_ptr<const MappedFile> open(
      const std::filesystem::path& path,
      std::uint64_t most_bytes = std::numeric_limits<std::uint64_t>::max());
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }
  std::string_view text() const { return {reinterpret_cast<const char*>(data_), size_}; }

 private:
  MappedFile(std::filesystem::path path, const std::byte* data, std::size_t size)
      : path_(std::move(path)), data_(data), size_(size) {}

  std::filesystem::path path_;
  const std::byte* data_;
  std::size_t size_;
};

}  // namespace greta::runtime
