#pragma once

#include <vector>

#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// Returns a confidence interval of the ratio of two sets of times, which are given as logarithms:
/// the Hodges-Lehmann estimate, with the ranks of Wilcoxon's test of two samples, from all pairs of
/// an old and a new value. The ranks are exact up to about 30 values each. The values of a set must
/// be independent; their distribution may be any. With too few values for the confidence the
/// interval is [0, infinity). Source: Hollander, Wolfe & Chicken, Nonparametric Statistical
/// Methods, 4.2.
Interval shift_interval(const std::vector<double>& base, const std::vector<double>& fresh,
                        double confidence);

}  // namespace greta::tuner
