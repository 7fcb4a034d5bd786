#include "tuner/bench/matrix.hpp"

#include <algorithm>

#include "runtime/device/system/utc.hpp"
#include "tuner/measure/sampler.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {
namespace {

bool timed(const MatrixWay& way) {
  return !way.result.failure && way.result.us.median > 0;
}

void check(MatrixRow& row, MatrixWay& way, Evaluator& evaluator, const MatrixOptions& options) {
  MeasuredResult& result = way.result;
  const Operation& operation = evaluator.catalog().at(row.problem.op);
  result.subject = {.problem = row.problem,
                    .config = way.config,
                    .origin = ResultOrigin::chosen,
                    .cache = options.limits.cold ? CacheState::cold : CacheState::warm};
  result.subject.set_device(evaluator.device());
  result.work = operation.work(row.problem);
  result.date = utc_now();
  const Trial trial = evaluator.verify(row.problem, way.config, options.seed, options.limits);
  result.verdict = trial.verdict;
  if (!trial.ok()) result.failure = Failure{*trial.failure, trial.message, trial.log};
}

void keep_times(const MatrixRow& row, MatrixWay& way, const Rounds& rounds, std::size_t index,
                const MatrixOptions& options) {
  Measurement measurement;
  measurement.samples_us = rounds.us.at(index);
  measurement.batch = rounds.batch.at(index);
  measurement.cold = options.limits.cold;
  measurement.dropped = rounds.dropped;
  measurement.flush_bytes = rounds.flush_bytes;
  measurement.clocks = rounds.clocks;
  summarise(measurement);
  way.result.set_measurement(measurement);
  const double roofline = roofline_us(row.problem.dtype, way.result.work, options.ceilings);
  if (measurement.median_us > 0) way.result.roofline = roofline / measurement.median_us;
}

}  // namespace

void add_ways(MatrixRow& row, const Lookup& lookup, const Answer& runs) {
  const Operation& operation = lookup.catalog().at(row.problem.op);
  for (const std::string& variant : operation.variant_names()) {
    const auto best = lookup.best_of(row.problem, variant);
    if (!best) {
      row.absent.emplace_back(variant, best.failure().message);
      continue;
    }
    row.ways.push_back(
        {best->config, std::string(to_string(best->source)), best->config == runs.config});
  }
  const bool listed =
      std::any_of(row.ways.begin(), row.ways.end(), [](const MatrixWay& way) { return way.runs; });
  if (!listed) row.ways.push_back({runs.config, runs.origin_text(), true});
}

void measure(MatrixRow& row, Evaluator& evaluator, const MatrixOptions& options) {
  std::vector<Config> configs;
  std::vector<MatrixWay*> ways;
  for (MatrixWay& way : row.ways) {
    check(row, way, evaluator, options);
    if (way.result.failure) continue;
    configs.push_back(way.config);
    ways.push_back(&way);
  }
  if (configs.empty()) return;
  const Rounds rounds = evaluator.time_rounds(row.problem, configs, options.rounds, options.seconds,
                                              options.seed, options.limits);
  for (std::size_t i = 0; i < ways.size(); ++i) {
    if (!rounds.us.at(i).empty()) {
      keep_times(row, *ways[i], rounds, i, options);
    } else if (rounds.failure) {
      ways[i]->result.failure = rounds.failure;
    }
  }
}

Interval relative_time(const MatrixRow& row, const MatrixWay& way) {
  const MatrixWay* fastest = nullptr;
  for (const MatrixWay& one : row.ways) {
    const bool better = fastest == nullptr || one.result.us.median < fastest->result.us.median;
    if (timed(one) && better) fastest = &one;
  }
  if (fastest == nullptr || !timed(way)) return {0, 0, 0};
  const double ratio = way.result.us.median / fastest->result.us.median;
  if (&way == fastest) return {1, 1, 1};
  const auto &a = way.result.samples.blocks_us, &b = fastest->result.samples.blocks_us;
  // Fewer rounds give no interval from order statistics.
  constexpr std::size_t least_rounds = 6;
  if (a.size() != 1 || b.size() != 1 || a[0].size() != b[0].size() || a[0].size() < least_rounds)
    return {.low = ratio, .high = ratio, .estimate = ratio};
  Interval interval = ratio_interval(a[0], b[0], 0.95);
  interval.estimate = ratio;
  return interval;
}

}  // namespace greta::tuner
