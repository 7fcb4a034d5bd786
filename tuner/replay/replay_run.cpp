#include "tuner/replay/replay_run.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "tuner/measure/statistics.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::tuner {
double ReplayRun::share_after(std::uint64_t evaluations) const {
  const auto end = times_us.begin() + static_cast<std::ptrdiff_t>(
                                          std::min<std::uint64_t>(evaluations, times_us.size()));
  const auto best = std::min_element(times_us.begin(), end);
  return best == end ? 0 : optimum_us / *best;
}

std::uint64_t ReplayRun::evaluations_to(double factor) const {
  const auto found = std::find_if(times_us.begin(), times_us.end(),
                                  [&](double us) { return us <= factor * optimum_us; });
  return found == times_us.end() ? 0 : static_cast<std::uint64_t>(found - times_us.begin()) + 1;
}

ReplayRun replay(const Recording& shuffled, const std::string& strategy,
                 const ReplayOptions& options) {
  const Space& space = shuffled.space();
  Budget budget = options.budget;
  budget.start(space.count());
  const std::uint64_t most = std::min(budget.remaining_trials(), space.count());
  ReplayRun run;
  run.optimum_us = shuffled.optimum_us();
  SearchProblem problem{&space, {}, options.seed};
  problem.budget = most;
  problem.prior = shuffled.prior();
  const auto searching = create_strategy(strategy, problem);
  std::deque<Choice> waiting;
  double told_s = 0;
  for (std::uint64_t asked = 0; run.times_us.size() < most;) {
    while (asked < most && waiting.size() < static_cast<std::size_t>(options.ahead)) {
      const Stopwatch watch;
      auto choice = searching->ask();
      const double asking_s = watch.seconds();
      run.asking_s += asking_s;
      run.longest_ask_s = std::max(run.longest_ask_s, asking_s + told_s);
      told_s = 0;
      if (!choice) break;
      ++asked;
      waiting.push_back(*std::move(choice));
    }
    if (waiting.empty()) break;
    const Trial trial = shuffled.trial(waiting.front());
    run.times_us.push_back(trial.ok() ? trial.measurement.median_us
                                      : std::numeric_limits<double>::infinity());
    const Stopwatch watch;
    searching->tell(waiting.front(), trial);
    told_s = watch.seconds();
    run.asking_s += told_s;
    waiting.pop_front();
  }
  return run;
}

const std::vector<std::uint64_t>& summary_evaluations() {
  static const std::vector<std::uint64_t> evaluations{20, 50, 100, 200};
  return evaluations;
}

ReplaySummary summarise(const std::string& strategy,
                        const std::vector<std::vector<ReplayRun>>& runs) {
  ReplaySummary summary;
  summary.strategy = strategy;
  std::size_t shortest = std::numeric_limits<std::size_t>::max();
  std::vector<double> to_10, to_5;
  double asks = 0, asking_s = 0;
  const auto or_never = [](std::uint64_t evaluations) {
    return evaluations > 0 ? static_cast<double>(evaluations)
                           : std::numeric_limits<double>::infinity();
  };
  for (const auto& of_recording : runs) {
    for (const ReplayRun& run : of_recording) {
      shortest = std::min(shortest, run.times_us.size());
      to_10.push_back(or_never(run.evaluations_to(1.1)));
      to_5.push_back(or_never(run.evaluations_to(1.05)));
      summary.runs_within_5 += run.evaluations_to(1.05) > 0 ? 1 : 0;
      asks += static_cast<double>(run.times_us.size());
      asking_s += run.asking_s;
      summary.longest_ask_ms = std::max(summary.longest_ask_ms, run.longest_ask_s * 1e3);
    }
  }
  if (to_10.empty()) return summary;
  summary.median_to_10 = median(to_10);
  summary.median_to_5 = median(to_5);
  summary.runs_within_5 /= static_cast<double>(to_5.size());
  summary.ask_ms = asks > 0 ? asking_s / asks * 1e3 : 0;
  for (const std::uint64_t evaluations : summary_evaluations()) {
    if (evaluations > shortest) break;
    double logarithms = 0;
    for (const auto& of_recording : runs) {
      double sum = 0;
      for (const ReplayRun& run : of_recording) sum += run.share_after(evaluations);
      logarithms += std::log(sum / static_cast<double>(of_recording.size()));
    }
    summary.shares.push_back(std::exp(logarithms / static_cast<double>(runs.size())));
  }
  return summary;
}

}  // namespace greta::tuner
