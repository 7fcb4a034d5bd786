#pragma once

#include <cstddef>
#include <filesystem>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Compiled kernels on disk, one file per content key. A cache error never fails a compilation: an
/// unreadable entry is a miss, and a failed write is logged once. Entries are published by an
/// atomic rename, so processes may share a folder. Thread-safe.
class KernelCache {
 public:
  /// Creates a cache below a folder. An empty folder name disables the cache.
  explicit KernelCache(std::filesystem::path directory);

  /// Returns the stored binary, or nothing if there is none, or if it is damaged or belongs to
  /// another key.
  std::optional<std::vector<std::byte>> load(const std::string& key) const;
  void store(const std::string& key, std::span<const std::byte> binary);

  /// Returns the path of a key's file, whether or not it exists.
  std::filesystem::path path(const std::string& key) const;

 private:
  void warn_once(const std::string& why);

  std::filesystem::path directory_;
  std::once_flag warned_;
};

}  // namespace greta::device
