#include "tuner/bench/soak.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "tuner/bench/compare.hpp"
#include "tuner/bench/shift.hpp"

namespace greta::tuner {
namespace {

constexpr double confidence_of_soak = 0.95;

using Turns = std::vector<const SoakTurn*>;

// The number of turns of a warm-up: a tenth, but at least one.
std::size_t warm_up_of(std::size_t turns) {
  return std::min(turns, std::max<std::size_t>(1, turns / 10));
}

// Returns the logarithms of the times of turns that ended in a part of the time.
std::vector<double> logarithms(const Turns& turns, double after_s, double until_s) {
  std::vector<double> logs;
  for (const SoakTurn* turn : turns) {
    if (turn->at_s > after_s && turn->at_s <= until_s && turn->median_us > 0)
      logs.push_back(std::log(turn->median_us));
  }
  return logs;
}

// Compares the last third of the time after the warm-up with the first one.
Interval drift_of(const Turns& turns, double confidence) {
  if (turns.empty()) return SoakResult().drift;
  const double begin_s = turns[warm_up_of(turns.size()) - 1]->at_s, end_s = turns.back()->at_s;
  const double third_s = (end_s - begin_s) / 3;
  return shift_interval(logarithms(turns, begin_s, begin_s + third_s),
                        logarithms(turns, end_s - third_s, end_s), confidence);
}

void judge_kernel(SoakResult& result, const Turns& turns, const SoakLimits& limits,
                  double confidence) {
  std::vector<double> medians;
  const std::size_t warm_up = warm_up_of(turns.size());
  for (std::size_t i = 0; i < turns.size(); ++i) {
    const SoakTurn& turn = *turns[i];
    result.launches += turn.launches;
    if (turn.wrong > 0 && result.wrong == 0) result.first_wrong_s = turn.at_s;
    result.wrong += turn.wrong;
    result.slowest_us = std::max(result.slowest_us, turn.median_us);
    if (turn.median_us > 0) medians.push_back(turn.median_us);
    if (i >= warm_up) result.growth_bytes += turn.host_growth;
  }
  result.median_us = median(medians);
  result.drift = drift_of(turns, confidence);
  const Finding change = result.drift.low > 0 ? judge(result.drift, limits.drift) : Finding::unsure;
  if (result.skipped) {
    result.verdict = SoakVerdict::skipped;
  } else if (result.failure) {
    result.verdict = SoakVerdict::fails;
  } else if (result.wrong > 0) {
    result.verdict = SoakVerdict::wrong_results;
  } else if (result.growth_bytes > limits.growth_bytes) {
    result.verdict = SoakVerdict::memory_grows;
  } else if (change == Finding::slower || change == Finding::faster) {
    result.verdict = SoakVerdict::drifts;
  }
}

}  // namespace

std::string_view to_string(SoakVerdict verdict) {
  switch (verdict) {
    case SoakVerdict::skipped:
      return "skipped";
    case SoakVerdict::stable:
      return "stable";
    case SoakVerdict::drifts:
      return "drifts";
    case SoakVerdict::memory_grows:
      return "memory grows";
    case SoakVerdict::wrong_results:
      return "wrong results";
    case SoakVerdict::fails:
      return "fails";
  }
  return "unknown";
}

void SoakRange::add(const std::optional<double>& value) {
  if (!value) return;
  least = least ? std::min(*least, *value) : *value;
  most = most ? std::max(*most, *value) : *value;
  last = value;
}

SoakSummary judge_soak(std::vector<SoakResult> results, const std::vector<SoakTurn>& turns,
                       const SoakLimits& limits) {
  SoakSummary summary;
  std::vector<Turns> of_kernels(results.size());
  std::set<std::string> throttled;
  for (const SoakTurn& turn : turns) {
    of_kernels[turn.kernel].push_back(&turn);
    summary.sm_mhz.add(turn.card.sm_mhz);
    summary.celsius.add(turn.card.state.celsius);
    summary.watts.add(turn.card.state.watts);
    if (!turn.card.state.throttled.empty()) throttled.insert(turn.card.state.throttled);
  }
  for (const std::string& why : throttled)
    summary.throttled += (summary.throttled.empty() ? "" : "; ") + why;
  const double confidence =
      1 - (1 - confidence_of_soak) / static_cast<double>(std::max<std::size_t>(1, results.size()));
  for (std::size_t i = 0; i < results.size(); ++i) {
    judge_kernel(results[i], of_kernels[i], limits, confidence);
    summary.verdict = std::max(summary.verdict, results[i].verdict);
  }
  summary.kernels = std::move(results);
  if (turns.empty()) return summary;
  const SoakTurn &warm = turns[warm_up_of(turns.size()) - 1], &last = turns.back();
  summary.seconds = last.at_s;
  summary.host_growth = last.host_bytes - warm.host_bytes;
  summary.device_growth = last.device_bytes - warm.device_bytes;
  if (std::max(summary.host_growth, summary.device_growth) > limits.growth_bytes)
    summary.verdict = std::max(summary.verdict, SoakVerdict::memory_grows);
  return summary;
}

}  // namespace greta::tuner
