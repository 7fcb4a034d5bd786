#include "tuner/measure/clock_warm_up.hpp"

#include <algorithm>
#include <optional>
#include <vector>

#include "tuner/measure/statistics.hpp"

namespace greta::tuner {
namespace {

constexpr double tolerance = 1.03;
constexpr double drift = 1.1;   // a steady speed within it is the new usual one
constexpr int to_learn = 120;   // samples, each after about 1.3 ms of work
constexpr int learnt_from = 9;  // the last of them, when the clocks are up
constexpr int patience = 200;

bool alike(double x_us, double y_us) {
  return std::max(x_us, y_us) <= tolerance * std::min(x_us, y_us);
}

/// Returns the median of the last samples if most of them are alike: the clocks don't rise now.
std::optional<double> steady(const std::vector<double>& samples) {
  if (samples.size() < learnt_from) return std::nullopt;
  const auto first = samples.end() - learnt_from;
  const double middle = median({first, samples.end()});
  const auto near = std::count_if(first, samples.end(),
                                  [middle](double sample) { return alike(sample, middle); });
  return near >= learnt_from - 2 ? std::optional(middle) : std::nullopt;
}

// Some samples are much faster than all others: on an H200 one of 32 takes 110 µs instead of 116.
// So the usual time is a median, and a single fast sample does not change it.
Result<double> usual_time(const TakeSamples& take) {
  std::vector<double> samples;
  for (int i = 0; i < to_learn; ++i) {
    const auto taken = take(1);
    if (!taken) return taken.failure();
    samples.push_back(taken->front());
  }
  return median({samples.end() - learnt_from, samples.end()});
}

}  // namespace

Result<void> Pace::reach(const TakeSamples& take) {
  if (usual_us_ == 0) {
    const auto learnt = usual_time(take);
    if (!learnt) return learnt.failure();
    usual_us_ = *learnt;
    return {};
  }
  std::vector<double> samples;
  for (int i = 0; i < patience; ++i) {
    const auto taken = take(1);
    if (!taken) return taken.failure();
    samples.push_back(taken->front());
    if (alike(samples.back(), usual_us_)) return {};
    // The usual time differs a little between minutes, and between fast and slow launches. A much
    // slower steady speed is a clock that has yet to rise.
    const auto now = steady(samples);
    if (!now || *now > drift * usual_us_) continue;
    usual_us_ = *now;
    return {};
  }
  usual_us_ = median({samples.end() - learnt_from, samples.end()});
  return {};
}

}  // namespace greta::tuner
