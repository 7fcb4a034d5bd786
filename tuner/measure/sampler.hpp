#pragma once

#include <functional>
#include <vector>

#include "db/measurement.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// The stopping criteria of sampling one candidate.
struct SamplingLimits {
  double target = 0.01;  ///< relative half-width of the median's 95 % confidence interval
  double seconds = 1;    ///< time limit including warm-up; at least one sample is taken
  int minimum = 7;       ///< minimum number of samples before the target is tested
  int maximum = 300;
  double best_us = 0;      ///< stop when clearly slower than this; 0: never
  double overhead_us = 0;  ///< device time in addition to each sample (cache flush)
  /// Device time in addition to each call of TakeSamples (raising the clocks). Samples that take
  /// less time than this are taken together.
  double submission_us = 0;
  double warm_up_us = 0;  ///< an earlier sample, which ended just now; 0: there is none
};

/// Takes n samples in microseconds, or fails as a whole.
using TakeSamples = std::function<Result<std::vector<double>>(int n)>;

/// Warms up until two consecutive samples agree, then samples in growing chunks until the target is
/// reached, the time has passed, or the candidate is clearly slower than the best.
Result<Measurement> sample_until_sure(const TakeSamples& take, const SamplingLimits& limits);

/// Returns whether samples show that a candidate is clearly slower than the best, whose time is
/// best_us. 0 means that there is none.
bool clearly_slower(const std::vector<double>& samples_us, double best_us);

/// Computes the summary of `measurement.samples_us`.
void summarise(Measurement& measurement);

}  // namespace greta::tuner
