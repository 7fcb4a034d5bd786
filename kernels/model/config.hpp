#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// The words for which values of parameters stand, by the parameters' names: value 1 stands for the
/// second word.
using ValueWords = std::map<std::string, std::vector<std::string>, std::less<>>;

/// Returns the word that stands for a parameter's value, or the number.
std::string shown_value(const ValueWords& words, std::string_view parameter, int value);

/// One value for each parameter of one variant of a template. The text form is `tiled BM=128 BN=64
/// BK=16 …`: the variant, then the parameters in the space's order.
struct Config {
  std::string variant;
  std::vector<std::pair<std::string, int>> values;
  /// For shown(); null: all values are numbers. Configurations that differ in it are equal.
  std::shared_ptr<const ValueWords> words{};

  /// Returns the value of a parameter. Throws Error if there is no parameter of that name.
  int operator[](std::string_view name) const;
  /// Returns the value of a parameter, which may be changed. Throws likewise.
  int& value(std::string_view name);
  bool has(std::string_view name) const;
  std::string text() const;
  /// Returns the text with words in place of the values that stand for them, for people.
  std::string shown() const;
  std::uint64_t hash() const;

  auto operator<=>(const Config& other) const {
    return std::tie(variant, values) <=> std::tie(other.variant, other.values);
  }
  bool operator==(const Config& other) const {
    return variant == other.variant && values == other.values;
  }
};

struct ConfigHash {
  std::size_t operator()(const Config& config) const {
    return static_cast<std::size_t>(config.hash());
  }
};

}  // namespace greta::kernels
