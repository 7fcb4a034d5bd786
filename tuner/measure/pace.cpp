#include "tuner/measure/pace.hpp"

#include <algorithm>

namespace greta {
namespace {

constexpr double tolerance = 1.03;
constexpr int to_learn = 40;  // samples, at some 5 ms of work each
constexpr int patience = 200;

}  // namespace

Result<void> Pace::reach(const TakeSamples& take) {
  const bool learning = best_us_ == 0;
  double last_us = 0;
  for (int i = 0; i < (learning ? to_learn : patience); ++i) {
    const auto taken = take(1);
    if (!taken) return taken.failure();
    last_us = taken->front();
    if (!learning && last_us <= tolerance * best_us_) {
      best_us_ = std::min(best_us_, last_us);
      return {};
    }
    if (learning) best_us_ = best_us_ == 0 ? last_us : std::min(best_us_, last_us);
  }
  if (!learning) best_us_ = last_us;
  return {};
}

}  // namespace greta
