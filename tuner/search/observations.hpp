#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

// Functions that choose what a model is fitted to, for strategies that keep their observations in
// one vector, in the order of the trials. An observation has a `cost`, infinite after a failure.

/// Keeps the `best` cheapest of these observations, cheapest first, then the `latest` of the
/// others. Their number is limited, because the cost of a fit is cubic in it.
template <typename Observation>
void keep_best_and_latest(std::vector<const Observation*>& all, std::size_t best,
                          std::size_t latest) {
  const auto middle = all.begin() + static_cast<std::ptrdiff_t>(std::min(best, all.size()));
  const auto cheaper = [](const Observation* a, const Observation* b) {
    return std::pair(a->cost, a) < std::pair(b->cost, b);
  };
  std::partial_sort(all.begin(), middle, all.end(), cheaper);
  // Among the remaining observations, a higher address is a later trial.
  const auto end = middle + std::min(static_cast<std::ptrdiff_t>(latest), all.end() - middle);
  std::partial_sort(middle, end, all.end(), std::greater<>());
  all.erase(end, all.end());
}

/// Returns the median of the finite costs, of which there must be one. Models receive no greater
/// cost, because differences among slow configurations would hide those among fast ones.
template <typename Observation>
double median_cost(const std::vector<const Observation*>& known) {
  std::vector<double> costs;
  for (const Observation* observation : known) {
    if (std::isfinite(observation->cost)) costs.push_back(observation->cost);
  }
  const auto middle = costs.begin() + static_cast<std::ptrdiff_t>(costs.size() / 2);
  std::nth_element(costs.begin(), middle, costs.end());
  return *middle;
}

}  // namespace greta::tuner
