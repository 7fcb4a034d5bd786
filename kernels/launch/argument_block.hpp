#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/device/layers.hpp"
#include "runtime/device/tensor_map.hpp"

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
  /// Appends zeros in place of a tensor map and returns their offset.
  std::size_t add_tensor_map() {
    const std::size_t at = (bytes_.size() + device::tensor_map_alignment - 1) /
                           device::tensor_map_alignment * device::tensor_map_alignment;
    bytes_.resize(at + device::tensor_map_bytes);
    return at;
  }
  /// Appends an argument, one of several types: its number, zeros in place of a tensor map, or else
  /// the address that `address_of(value)` returns for it.
  template <typename Variant, typename AddressOf>
  std::size_t add(const Variant& argument, const AddressOf& address_of) {
    const auto append = [&](const auto& value) {
      if constexpr (std::is_arithmetic_v<std::decay_t<decltype(value)>>) {
        return add(value);
      } else if constexpr (requires { value.map; }) {
        return add_tensor_map();
      } else {
        return add(std::uint64_t{address_of(value)});
      }
    };
    return std::visit(append, argument);
  }
  std::vector<std::byte> take() { return std::move(bytes_); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace greta::kernels
