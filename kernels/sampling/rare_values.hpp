#pragma once

#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Which values of attributes few choices have. Problems with some values are seldom valid, so that
/// draws that give each value the same chance have few of them.
class RareValues {
 public:
  using Value = std::pair<std::string, std::string>;  ///< an attribute's name and value

  /// The operation must outlive it.
  explicit RareValues(const Operation& operation) : operation_(operation) {}

  /// Returns the value, other than a default, that the fewest choices of the variant have, and that
  /// was drawn in vain the fewest times. Returns std::nullopt if there is none, or none that a
  /// choice had after many draws.
  std::optional<Value> draw(std::string_view variant, std::mt19937_64& random);
  /// Adds a choice of the variant.
  void add(std::string_view variant, const Problem& problem);

 private:
  struct Count {
    int chosen = 0, drawn = 0;
  };
  using Counts = std::map<Value, Count>;

  Counts& counts_of(std::string_view variant);

  const Operation& operation_;
  std::map<std::string, Counts, std::less<>> counts_;  ///< by variant
};

}  // namespace greta::kernels
