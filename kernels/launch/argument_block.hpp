#pragma once

#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Packs a kernel's argument block: values in order, each at its natural alignment.
class ArgumentBlock {
 public:
  /// Appends a value and returns its offset in bytes.
  template <typename T>
  std::size_t add(T value) {
    const std::size_t at = (bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return at;
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace greta::kernels
