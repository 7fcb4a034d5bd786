#pragma once

#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// The middle value; the mean of the two middle ones for an even count. 0 for no values.
double median(std::vector<double> values);

/// Value at a quantile 0…1 by linear interpolation. 0 for no values.
double quantile(std::vector<double> values, double at);

struct Interval {
  double low = 0;
  double high = 0;
  double estimate = 0;
  bool contains(double value) const { return low <= value && value <= high; }
};

/// Distribution-free confidence interval of the median from order statistics: the number of samples
/// below the median is binomial(n, 1/2). Where n is too small for the confidence, the interval is
/// [min, max] and its true confidence is 1 - 2^(1-n).
/// Source: Hahn & Meeker, Statistical Intervals, section 5.2.
Interval median_interval(const std::vector<double>& samples, double confidence);

/// Confidence interval of the typical ratio of paired times a[i] / b[i]. Works on logarithms:
/// by order statistics where there are enough pairs for the confidence, else by Student's t.
/// Needs at least two pairs; for fewer the interval is [0, infinity).
Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                        double confidence);

/// Two-sided quantile of Student's t: P(|T| <= result) = confidence, for `degrees` >= 1.
double student_t(int degrees, double confidence);

}  // namespace greta::tuner
