#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// The distribution of positive numbers: ratios or times.
struct Spread {
  std::size_t count = 0;
  double geometric_mean = 0;  ///< 0 without values
  double least = 0, quarter = 0, half = 0, three_quarters = 0, most = 0;
};
/// Values that are not positive and finite are left out.
Spread spread_of(const std::vector<double>& values);

/// Returns the distribution of the times of each value of a parameter, by the place of the value
/// among `values`. `places` has one for each time; a place beyond the values means that the
/// parameter was not active. A time counts for the value with which it was measured, and for no
/// other one.
std::vector<Spread> spreads_by_value(const std::vector<double>& times,
                                     const std::vector<std::uint16_t>& places, std::size_t values);

/// Returns the places of the points that no other point dominates: none is at most as large in both
/// coordinates and smaller in one. They are in ascending order of x, equal points in their own
/// order. Points with a coordinate that is not finite are left out.
std::vector<std::size_t> pareto(const std::vector<double>& x, const std::vector<double>& y);

}  // namespace greta::tuner
