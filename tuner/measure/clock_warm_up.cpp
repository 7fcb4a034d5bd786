#include "tuner/measure/clock_warm_up.hpp"

#include <algorithm>
#include <limits>

namespace greta::tuner {
namespace {

constexpr double tolerance = 1.03;
constexpr int to_learn = 40;  // samples, each after about 5 ms of work
constexpr int patience = 200;

}  // namespace

Result<void> Pace::reach(const TakeSamples& take) {
  const bool learning = best_us_ == 0;
  const double fast_us = tolerance * best_us_;  // 0 while learning, which no sample reaches
  double last_us = 0;
  double least_us = std::numeric_limits<double>::infinity();
  for (int i = 0; i < (learning ? to_learn : patience); ++i) {
    const auto taken = take(1);
    if (!taken) return taken.failure();
    last_us = taken->front();
    least_us = std::min(least_us, last_us);
    if (last_us <= fast_us) {
      best_us_ = std::min(best_us_, last_us);
      return {};
    }
  }
  best_us_ = learning ? least_us : last_us;
  return {};
}

}  // namespace greta::tuner
