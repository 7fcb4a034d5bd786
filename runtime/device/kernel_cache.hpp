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

/// Compiled kernels on disk, one file for each content key. Losing the cache never fails a compile:
/// what can't be read is a miss, what can't be written is logged once. Entries are published by an
/// atomic rename, so processes may share a folder. Thread-safe.
class KernelCache {
 public:
  /// An empty folder name: no cache.
  explicit KernelCache(std::filesystem::path directory);

  /// The stored binary; nothing when there is none, or when it is damaged or of another key.
  std::optional<std::vector<std::byte>> load(const std::string& key) const;
  void store(const std::string& key, std::span<const std::byte> binary);

  /// The file of a key, whether it exists or not.
  std::filesystem::path path(const std::string& key) const;

 private:
  void warn_once(const std::string& why);

  std::filesystem::path directory_;
  std::once_flag warned_;
};

}  // namespace greta::device
