#include "tuner/replay/prior_judgement.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace greta::tuner {
namespace {

/// Returns the places of the values in ascending order; equal ones keep their order.
std::vector<std::size_t> ascending(const std::vector<double>& values) {
  std::vector<std::size_t> order(values.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return values[a] < values[b]; });
  return order;
}

/// Returns the rank of each value; equal ones share the mean of their ranks.
std::vector<double> ranks(const std::vector<double>& values) {
  const auto order = ascending(values);
  std::vector<double> result(values.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first;
    while (end < order.size() && values[order[end]] == values[order[first]]) ++end;
    for (std::size_t i = first; i < end; ++i) {
      result[order[i]] = static_cast<double>(first + end - 1) / 2;
    }
    first = end;
  }
  return result;
}

double correlation(const std::vector<double>& x, const std::vector<double>& y) {
  const double count = static_cast<double>(x.size());
  const double mean_x = std::accumulate(x.begin(), x.end(), 0.0) / count;
  const double mean_y = std::accumulate(y.begin(), y.end(), 0.0) / count;
  double together = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    together += (x[i] - mean_x) * (y[i] - mean_y);
    of_x += (x[i] - mean_x) * (x[i] - mean_x);
    of_y += (y[i] - mean_y) * (y[i] - mean_y);
  }
  return of_x > 0 && of_y > 0 ? together / std::sqrt(of_x * of_y) : 0;
}

}  // namespace

std::vector<PredictedRow> predicted_rows(const Recording& recording) {
  std::vector<PredictedRow> rows;
  const auto subject = recording.subject();
  if (!subject) return rows;
  const Instance instance(*subject->operation, subject->problem, subject->device);
  const UnitRates rates = unit_rates(subject->device);
  const Space& space = recording.space();
  for (std::uint64_t index = 0; index < space.count(); ++index) {
    const Choice choice = space.choice(index);
    const Trial trial = recording.trial(choice);
    if (!trial.ok() || instance.rejects(trial.config)) continue;
    const KernelWork work = instance.work(trial.config);
    if (work.empty()) continue;
    rows.push_back({trial.config, trial.measurement.median_us, cost_terms(work, rates)});
  }
  return rows;
}

PriorJudgement judge_prior(const std::vector<PredictedRow>& rows,
                           const std::optional<Config>& standard) {
  std::vector<double> predicted, measured;
  for (const PredictedRow& row : rows) {
    predicted.push_back(predicted_cycles(row.terms));
    measured.push_back(row.time_us);
  }
  PriorJudgement judgement;
  judgement.rank_correlation = correlation(ranks(predicted), ranks(measured));
  const double optimum = *std::min_element(measured.begin(), measured.end());
  const auto order = ascending(predicted);
  double best = measured[order.front()];
  for (std::size_t place = 0, top = 0; top < PriorJudgement::tops.size(); ++top) {
    for (; place < std::min(PriorJudgement::tops[top], order.size()); ++place) {
      best = std::min(best, measured[order[place]]);
    }
    judgement.regret[top] = best / optimum - 1;
  }
  for (const PredictedRow& row : rows) {
    if (standard && row.config == *standard) judgement.default_regret = row.time_us / optimum - 1;
  }
  return judgement;
}

}  // namespace greta::tuner
