#pragma once

#include <cstddef>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// The distribution of positive ratios.
struct Spread {
  std::size_t count = 0;
  double geometric_mean = 0;  ///< 0 without values
  double least = 0, quarter = 0, half = 0, three_quarters = 0, most = 0;
};
/// Values that are not positive and finite are left out.
Spread spread_of(const std::vector<double>& values);

/// Returns the places of the points that no other point dominates: none is at most as large in both
/// coordinates and smaller in one. They are in ascending order of x, equal points in their own
/// order. Points with a coordinate that is not finite are left out.
std::vector<std::size_t> pareto(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace greta::tuner
