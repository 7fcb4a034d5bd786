#include "tuner/bench/host_timer.hpp"

#include <algorithm>

#include "tuner/bench/undisturbed.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double sample_us = 200;  // minimum duration of a sample, approximately

Result<double> time_us(int calls, const HostTimer::Run& run) {
  const Stopwatch watch;
  if (auto done = run(calls); !done) return done.failure();
  return watch.seconds() * 1e6;
}

}  // namespace

Result<std::vector<double>> HostTimer::take(int count, const Run& run) {
  for (int calls = 1; calls_ == 0; calls = std::min(4 * calls, most_calls_)) {
    const auto us = time_us(calls, run);
    if (!us) return us.failure();
    if (*us >= sample_us || calls == most_calls_) calls_ = calls;
  }
  std::vector<double> samples;
  for (int i = 0; i < count; ++i) {
    const auto us = undisturbed([&] { return time_us(calls_, run); }, Waiting::all_threads);
    if (!us) return us.failure();
    samples.push_back(*us / calls_);
  }
  return samples;
}

}  // namespace greta::tuner
