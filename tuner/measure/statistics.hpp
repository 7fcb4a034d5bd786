#pragma once

#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Returns the median; the mean of the two middle values for an even count, and 0 for no values.
double median(std::vector<double> values);

/// Returns the quantile `at` (0…1) with linear interpolation; 0 for no values.
double quantile(std::vector<double> values, double at);

struct Interval {
  double low = 0;
  double high = 0;
  double estimate = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// Returns the distribution-free confidence interval of the median from order statistics: the
/// number of samples below the median is binomial(n, 1/2). If n is too small for the confidence,
/// the interval is [min, max] and its true confidence is 1 - 2^(1-n). Source: Hahn & Meeker,
/// Statistical Intervals, section 5.2.
Interval median_interval(const std::vector<double>& samples, double confidence);

/// Returns the confidence interval of the median ratio of paired times a[i] / b[i], computed on
/// logarithms: from order statistics if there are enough pairs for the confidence, else with
/// Student's t for their mean. It needs at least two pairs; for fewer the interval is [0,
/// infinity).
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                        double confidence);

/// Returns the two-sided quantile of Student's t: P(|T| <= result) = confidence, for `degrees` >=
/// 1.
double student_t(int degrees, double confidence);

}  // namespace greta::tuner
