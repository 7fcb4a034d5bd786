#include "tuner/report/next_steps.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "tuner/report/format.hpp"

namespace greta::tuner {
namespace {

// Above this share of the roofline, little is left to gain.
constexpr double near_roofline = 0.8;

NextStep step_of(const StoredWinner& result, const std::vector<std::string>& stale) {
  const Winner& winner = result.winner;
  const double us = winner.measurement.median_us;
  NextStep step{.problem = result.problem,
                .device_id = result.device_id,
                .cold = winner.cold,
                .stale = !stale.empty()};
  const bool far = winner.roofline > 0 && winner.roofline < near_roofline;
  if (far || (step.stale && winner.roofline > 0))
    step.gain_us = us * std::max(0.0, 1 - winner.roofline);
  if (far) {
    step.why = fmt::format("{} at {} of the roofline, at most {} to gain", format_time(us),
                           format_share(winner.roofline), format_time(step.gain_us));
  }
  if (step.stale) {
    step.why = fmt::format("{}, stale: {}", format_time(us), fmt::join(stale, "; "));
  }
  return step;
}

}  // namespace

std::optional<NextStep> next_step(const StoredWinner& result, StalenessJudge& judge) {
  NextStep step = step_of(result, judge.reasons(result));
  if (!(step.gain_us > 0) && !step.stale) return std::nullopt;
  return step;
}

std::vector<NextStep> next_steps(const std::vector<StoredWinner>& results, StalenessJudge& judge,
                                 std::size_t most) {
  std::vector<NextStep> steps;
  for (const StoredWinner& result : results) {
    if (auto step = next_step(result, judge)) steps.push_back(*std::move(step));
  }
  std::stable_sort(steps.begin(), steps.end(), [](const NextStep& a, const NextStep& b) {
    return a.stale != b.stale ? a.stale : a.gain_us > b.gain_us;
  });
  if (steps.size() > most) steps.resize(most);
  return steps;
}

}  // namespace greta::tuner
