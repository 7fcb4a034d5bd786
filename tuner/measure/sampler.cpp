#include "tuner/measure/sampler.hpp"

#include <algorithm>
#include <cmath>

#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double confidence = 0.95;
constexpr int maximum_warm_up = 10;
constexpr double stable = 0.05;      // two warm-up samples closer than this are stable
constexpr double chunk_us = 20'000;  // device time in one submission
constexpr double most_together = 32, most_cheap = 16;  // samples in one submission

bool precise(const std::vector<double>& samples, double target) {
  const Interval interval = median_interval(samples, confidence);
  return interval.high - interval.low <= 2 * target * interval.estimate;
}

double each_us(double sample_us, const SamplingLimits& limits) {
  return std::max(1e-3, sample_us) + limits.overhead_us;
}

// Returns the number of samples that cost about as much as submitting them.
int cheap_chunk(double sample_us, const SamplingLimits& limits) {
  return static_cast<int>(
      std::clamp(limits.submission_us / each_us(sample_us, limits), 1.0, most_cheap));
}

int next_chunk(const std::vector<double>& samples, const SamplingLimits& limits) {
  const int cheap = cheap_chunk(median(samples), limits);
  if (samples.size() < 3 && limits.best_us > 0) return cheap;  // may stop after each chunk
  const int fitting =
      static_cast<int>(std::clamp(chunk_us / each_us(median(samples), limits), 1.0, most_together));
  const int wanted = std::max({static_cast<int>(samples.size()) / 2, limits.minimum, cheap});
  return std::clamp(std::min(fitting, wanted), 1,
                    std::max(1, limits.maximum - static_cast<int>(samples.size())));
}

}  // namespace

// A single sample can be disturbed, so the margin is wider for fewer samples.
bool clearly_slower(const std::vector<double>& samples, double best_us) {
  if (best_us <= 0 || samples.empty()) return false;
  const double lowest = *std::min_element(samples.begin(), samples.end());
  switch (samples.size()) {
    case 1:
      return lowest > 3 * best_us;
    case 2:
      return lowest > 1.5 * best_us;
    case 3:
      return lowest > 1.25 * best_us;
    default:
      return median_interval(samples, confidence).low > 1.05 * best_us;
  }
}

void summarise(Measurement& measurement) {
  const Interval interval = median_interval(measurement.samples_us, confidence);
  measurement.median_us = interval.estimate;
  measurement.low_us = interval.low;
  measurement.high_us = interval.high;
  measurement.p99_us = quantile(measurement.samples_us, 0.99);
}

Result<Measurement> sample_until_sure(const TakeSamples& take, const SamplingLimits& limits) {
  const Stopwatch watch;
  Measurement measurement;
  auto& samples = measurement.samples_us;

  // The last warm-up samples are kept: if one takes a large part of the time, there is no time for
  // another.
  std::vector<double> last;
  if (limits.warm_up_us > 0) last.push_back(limits.warm_up_us);
  for (int i = 0; i < maximum_warm_up; ++i) {
    auto taken = take(last.empty() ? 1 : cheap_chunk(last.back(), limits));
    if (!taken) return taken.failure();
    const double us = taken->front();
    const bool settled = !last.empty() && std::abs(us - last.back()) <= stable * us;
    last = *std::move(taken);
    if (settled || clearly_slower(last, limits.best_us) || watch.seconds() > 0.2 * limits.seconds) {
      break;
    }
  }
  samples = last;

  while (true) {
    const int count = static_cast<int>(samples.size());
    measurement.raced = clearly_slower(samples, limits.best_us);
    if (measurement.raced || count >= limits.maximum || watch.seconds() >= limits.seconds) break;
    if (count >= limits.minimum && precise(samples, limits.target)) break;
    auto taken = take(next_chunk(samples, limits));
    if (!taken) return taken.failure();
    samples.insert(samples.end(), taken->begin(), taken->end());
  }
  summarise(measurement);
  return measurement;
}

}  // namespace greta::tuner
