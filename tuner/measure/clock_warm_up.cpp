#include "tuner/measure/clock_warm_up.hpp"

#include <algorithm>
#include <vector>

#include "tuner/measure/statistics.hpp"

namespace greta::tuner {
namespace {

constexpr double tolerance = 1.03;
constexpr int to_learn = 120;   // samples, each after about 1.3 ms of work
constexpr int learnt_from = 9;  // the last of them, when the clocks are up
constexpr int patience = 200;

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
  double last_us = 0, before_us = 0;
  std::vector<double> samples;
  for (int i = 0; i < patience; ++i) {
    const auto taken = take(1);
    if (!taken) return taken.failure();
    before_us = last_us;
    last_us = taken->front();
    samples.push_back(last_us);
    if (last_us > tolerance * usual_us_) continue;
    const bool faster_twice = before_us > 0 && std::max(last_us, before_us) * tolerance < usual_us_;
    if (faster_twice) usual_us_ = std::max(last_us, before_us);
    if (faster_twice || last_us * tolerance >= usual_us_) return {};
  }
  usual_us_ = median({samples.end() - learnt_from, samples.end()});
  return {};
}

}  // namespace greta::tuner
