#include "tuner/measure/energy_meter.hpp"

#include <algorithm>

#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {
namespace {

constexpr double most_wait_s = 2;       // for an update of the counter
constexpr double submission_s = 0.005;  // of launches between two readings
constexpr int most_at_once = 4096;

struct Update {
  double joules = 0, at_s = 0;
  double launches = 0;
};

Failure no_counter(const std::string& why) {
  return {Status::unavailable, why, {}};
}

}  // namespace

Result<EnergyBlock> measure_block(CardSensor& sensor,
                                  const std::function<Result<void>(int)>& launch, double seconds) {
  const Stopwatch watch;
  double launches = 0;
  int at_once = 1;
  std::optional<Update> first, last;
  double before = -1, waited_s = 0;
  double longest_poll_s = 0;
  while (true) {
    const double started_s = watch.seconds();
    if (auto done = launch(at_once); !done) return done.failure();
    launches += at_once;
    const double took_s = watch.seconds() - started_s;
    if (took_s < submission_s / 2 && at_once < most_at_once) at_once *= 2;
    const auto joules = sensor.joules();
    if (!joules) return no_counter("the driver reports no energy");
    const double now_s = watch.seconds();
    longest_poll_s = std::max(longest_poll_s, now_s - started_s);
    if (before >= 0 && *joules > before) {
      const Update update{*joules, now_s, launches};
      if (!first) {
        first = update;
      } else {
        last = update;
      }
      waited_s = now_s;
    }
    before = *joules;
    if (last && last->at_s - first->at_s >= seconds) break;
    if (now_s - waited_s > most_wait_s) return no_counter("the energy counter does not advance");
  }
  const double span_s = last->at_s - first->at_s;
  EnergyBlock block;
  block.watts = (last->joules - first->joules) / span_s;
  block.us = span_s / (last->launches - first->launches) * 1e6;
  block.joules = block.watts * block.us * 1e-6;
  block.sensor_error = 2 * block.joules * longest_poll_s / span_s;
  return block;
}

Energy summarise(const std::vector<EnergyBlock>& blocks, const std::string& sensor) {
  std::vector<double> joules, watts, us;
  Energy energy;
  for (const EnergyBlock& block : blocks) {
    joules.push_back(block.joules);
    watts.push_back(block.watts);
    us.push_back(block.us);
  }
  energy.joules = median(joules);
  energy.low = energy.high = energy.joules;
  for (const EnergyBlock& block : blocks) {
    energy.low = std::min(energy.low, block.joules - block.sensor_error);
    energy.high = std::max(energy.high, block.joules + block.sensor_error);
  }
  energy.watts = median(watts);
  energy.us = median(us);
  energy.source = sensor + " energy counter";
  return energy;
}

}  // namespace greta::tuner
