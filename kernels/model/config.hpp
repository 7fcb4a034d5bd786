#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// One value for each parameter of one variant of a template. The text form is `tiled BM=128 BN=64
/// BK=16 …`: the variant, then the parameters in the space's order.
struct Config {
  std::string variant;
  std::vector<std::pair<std::string, int>> values;

  /// Returns the value of a parameter. Throws Error if there is no parameter of that name.
  int operator[](std::string_view name) const;
  bool has(std::string_view name) const;
  std::string text() const;
  std::uint64_t hash() const;

  auto operator<=>(const Config&) const = default;
};

struct ConfigHash {
  std::size_t operator()(const Config& config) const {
    return static_cast<std::size_t>(config.hash());
  }
};

}  // namespace greta::kernels
