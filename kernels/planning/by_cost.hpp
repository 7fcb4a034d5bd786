#pragma once

#include <algorithm>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Returns choices by their costs, the cheapest first; equal ones stay in their order.
template <typename T>
std::vector<T> by_cost(std::vector<std::pair<double, T>> choices) {
  std::stable_sort(choices.begin(), choices.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<T> sorted;
  sorted.reserve(choices.size());
  for (auto& [cost, choice] : choices) sorted.push_back(std::move(choice));
  return sorted;
}

}  // namespace greta::kernels
