#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Reduces a set for which `holds` is true to a smallest one: no single member can be left out.
/// Of `n` members, one of which matters, about 2 log2(n) sets are tried.
///
/// The method is ddmin: A. Zeller, R. Hildebrandt: Simplifying and isolating failure-inducing
/// input, IEEE Transactions on Software Engineering 28(2), 2002.
inline std::vector<std::size_t> reduced(
    std::vector<std::size_t> all,
    const std::function<bool(const std::vector<std::size_t>&)>& holds) {
  std::size_t parts = 2;
  const auto part_of = [&](std::size_t i, bool inside) {
    const std::size_t begin = i * all.size() / parts, end = (i + 1) * all.size() / parts;
    std::vector<std::size_t> some;
    for (std::size_t j = 0; j < all.size(); ++j) {
      if ((j >= begin && j < end) == inside) some.push_back(all[j]);
    }
    return some;
  };
  /// Goes on with the first part, or the first rest, for which it holds.
  const auto goes_on = [&](bool inside) {
    for (std::size_t i = 0; i < parts; ++i) {
      auto some = part_of(i, inside);
      if (!holds(some)) continue;
      parts = inside ? 2 : std::max<std::size_t>(parts - 1, 2);
      all = std::move(some);
      return true;
    }
    return false;
  };
  while (all.size() > 1) {
    if (goes_on(true) || (parts > 2 && goes_on(false))) {
      parts = std::min(parts, std::max<std::size_t>(all.size(), 2));
      continue;
    }
    if (parts >= all.size()) break;
    parts = std::min(2 * parts, all.size());
  }
  return all;
}

}  // namespace greta::tuner
