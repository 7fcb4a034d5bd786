#pragma once

#include <functional>
#include <vector>

#include "db/measurement.hpp"
#include "runtime/device/result.hpp"

namespace greta::tuner {

/// When to stop sampling one candidate.
struct SamplingLimits {
  double target = 0.01;  ///< wanted half-width of the median's 95 % interval, relative
  double seconds = 1;    ///< of sampling, warm-up included; at least one sample is taken
  int minimum = 7;       ///< samples before the target counts
  int maximum = 300;
  double best_us = 0;      ///< race: give up when surely slower than this; 0: no race
  double overhead_us = 0;  ///< device time spent beside each sample (overwriting the cache)
};

/// Takes n samples, in microseconds, or fails as a whole.
using TakeSamples = std::function<Result<std::vector<double>>(int n)>;

/// The order of one measurement: warm up until two samples in a row agree, then sample in growing
/// chunks until sure, out of time, or surely slower than the best.
Result<Measurement> sample_until_sure(const TakeSamples& take, const SamplingLimits& limits);

/// Fills in the summary of m.samples_us.
void summarise(Measurement& measurement);

}  // namespace greta::tuner
