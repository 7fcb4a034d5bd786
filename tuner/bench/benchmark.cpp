#include "tuner/bench/benchmark.hpp"

#include <algorithm>

#include "tuner/measure/sampler.hpp"

namespace greta::tuner {
namespace {

// Spaces replaced.
std::string with(std::string text, char character) {
  std::replace(text.begin(), text.end(), ' ', character);
  return text;
}

}  // namespace

std::string Benchmark::name() const {
  std::string text = kind + "/" + row.op;
  if (!row.dtype.empty()) text += "/" + row.dtype;
  if (row.out_dtype != row.dtype) text += "-" + row.out_dtype;
  if (!row.problem.empty()) text += "/" + with(row.problem, ',');
  if (!row.attributes.empty()) text += "/" + with(row.attributes, ',');
  if (row.origin != "measured") text += "/" + with(row.origin, '-');
  return text;
}

void BenchmarkOutcome::fail(const Failure& why) {
  failure = why.message;
  status = to_string(why.status);
}

CsvRow finished_row(const Benchmark& benchmark, const BenchmarkOutcome& outcome,
                    const std::string& date, const std::string& clocks) {
  Measurement measurement;
  for (const auto& block : outcome.blocks_us) {
    measurement.samples_us.insert(measurement.samples_us.end(), block.begin(), block.end());
  }
  measurement.cold = benchmark.row.cache == "cold";
  measurement.clocks = clocks;
  if (!measurement.samples_us.empty()) summarise(measurement);
  CsvRow row = benchmark.row;
  row.set_measurement(measurement);
  row.blocks_us = outcome.blocks_us;
  row.control_us = outcome.control_us;
  row.cpu_us = outcome.cpu_us;
  row.cpu_control_us = outcome.cpu_control_us;
  if (benchmark.apart) row.processes = outcome.blocks_us.size();
  row.set_work(benchmark.work);
  if (row.us > 0) row.roofline = benchmark.roofline_us / row.us;
  row.status = outcome.status;
  row.date = date;
  return row;
}

}  // namespace greta::tuner
