#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include "runtime/device/layers.hpp"

namespace greta::device {

/// Pages of this process's memory that nobody may access while it lives: an access raises SIGSEGV.
class Fence {
 public:
  Fence() = default;
  /// Closes the whole pages of `memory`, if the system permits it.
  explicit Fence(std::span<std::byte> memory);
  Fence(Fence&& other) noexcept : pages_(std::exchange(other.pages_, {})) {}
  Fence& operator=(Fence&& other) noexcept {
    std::swap(pages_, other.pages_);
    return *this;
  }
  ~Fence();

  bool closed() const { return !pages_.empty(); }
  /// Returns the size of a page in bytes.
  static std::size_t page();

 private:
  std::span<std::byte> pages_;
};

}  // namespace greta::device
