#include "tuner/measure/measured_result.hpp"

#include "runtime/device/version.hpp"

namespace greta::tuner {

void Subject::set_device(const DeviceInfo& info) {
  backend = to_string(info.backend);
  device = info.name;
  driver = info.driver;
  compiler = info.compiler;
  greta_version = version();
}

ProblemWords Subject::words() const {
  ProblemWords words{.op = problem.op, .dims = problem.dims_text()};
  if (typed) {
    words.dtype = to_string(problem.dtype);
    words.out_dtype = to_string(problem.out_dtype);
  }
  for (const auto& [name, value] : problem.attributes) {
    words.attributes += (words.attributes.empty() ? "" : " ") + name + "=" + value;
  }
  return words;
}

bool Subject::from_database() const {
  return origin == ResultOrigin::winner || origin == ResultOrigin::nearest_shape ||
         origin == ResultOrigin::same_architecture;
}

TimeSummary summary_of(const Measurement& measurement) {
  return {.median = measurement.median_us,
          .low = measurement.low_us,
          .high = measurement.high_us,
          .p99 = measurement.p99_us,
          .spread_percent = measurement.spread_percent()};
}

void MeasuredResult::set_measurement(const Measurement& measurement) {
  us = summary_of(measurement);
  subject.cache = measurement.cold ? CacheState::cold : CacheState::warm;
  clocks = measurement.clocks;
  count = measurement.samples_us.size();
  if (count > 0) samples.blocks_us = {measurement.samples_us};
}

void MeasuredResult::add_verdict(const Verdict& fresh) {
  if (fresh.bound <= 0) return;
  if (verdict.bound <= 0 || fresh.ratio() > verdict.ratio()) verdict = fresh;
}

}  // namespace greta::tuner
