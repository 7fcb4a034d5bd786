#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta::device {

/// Downloads through staging memory. Waits once for all parts that fit into it together, because a
/// wait takes longer than copying a small part.
class StagedDownloads {
 public:
  StagedDownloads(std::byte* staging, std::size_t bytes) : staging_(staging), bytes_(bytes) {}

  /// Calls `copy(part, first, bytes, at)` to record the copy of a part's bytes from `first` to
  /// `at` of the staging memory, and `wait()` to run what was recorded. Both return Result<void>.
  template <typename Copy, typename Wait>
  Result<void> run(std::span<const Download> parts, const Copy& copy, const Wait& wait) {
    for (const Download& part : parts) {
      for (std::size_t first = 0; first < part.to.size();) {
        if (used_ == bytes_) {
          if (auto done = wait(); !done) return done;
          fetch();
        }
        const std::size_t bytes = std::min(part.to.size() - first, bytes_ - used_);
        if (auto done = copy(part, first, bytes, used_); !done) return done;
        staged_.push_back({used_, part.to.subspan(first, bytes)});
        used_ = std::min(bytes_, (used_ + bytes + alignment - 1) / alignment * alignment);
        first += bytes;
      }
    }
    if (staged_.empty()) return {};
    if (auto done = wait(); !done) return done;
    fetch();
    return {};
  }

 private:
  static constexpr std::size_t alignment = 256;
  struct Staged {
    std::size_t at;
    std::span<std::byte> to;
  };

  void fetch() {
    for (const auto& [at, to] : staged_) std::copy_n(staging_ + at, to.size(), to.begin());
    staged_.clear();
    used_ = 0;
  }

  std::byte* staging_;
  std::size_t bytes_;
  std::size_t used_ = 0;
  std::vector<Staged> staged_;
};

}  // namespace greta::device
