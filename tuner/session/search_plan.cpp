#include "tuner/session/search_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace greta::tuner {
namespace {

// Fraction of the roofline that an untuned kernel is assumed to reach. Only used for planning.
constexpr double assumed_efficiency_cpu = 0.2;
constexpr double assumed_efficiency_gpu = 0.3;
// If a launch takes a larger fraction of the budget than this, the search runs on a stand-in.
constexpr double longest_launch = 1.0 / 200;
// Fraction of the budget that a launch of the stand-in takes.
constexpr double stand_in_launch = 1.0 / 1000;

// Returns the work of the full problem divided by that of the problem being searched.
double scale(const SessionWork& work) {
  const Work full = work.result.work, less = work.operation.work(work.search_problem());
  return full.flops > 0 ? full.flops / less.flops : full.bytes / less.bytes;
}

// `full_s` is the time of one launch of the full problem. Returns false if there is no smaller
// stand-in than the current one.
bool choose_stand_in(SessionWork& work, double full_s) {
  const double wanted_s = std::max(stand_in_launch * work.planned_s(), 0.02);
  Problem smaller = work.operation.stand_in(work.result.problem, wanted_s / full_s);
  if (smaller == work.search_problem()) return false;
  const Work less = work.operation.work(smaller);
  work.result.stand_in = StandIn{std::move(smaller), less, full_s};
  return true;
}

// Estimates the time of one launch of the full problem from the default's time, in seconds.
double full_launch_s(const SessionWork& work) {
  const SessionResult& result = work.result;
  const Trial* best = best_trial(result.trials, work.search_problem().key());
  if (best == nullptr) return 0;
  double slowest_us = best->measurement.median_us;
  for (const auto& trial : result.trials) {
    if (trial.ok() && trial.config == result.default_config) {
      slowest_us = std::max(slowest_us, trial.measurement.median_us);
    }
  }
  return slowest_us * 1e-6 * scale(work);
}

void tell_stand_in(SessionWork& work) {
  SessionResult& result = work.result;
  if (!result.stand_in) return;
  result.notes.push_back(
      fmt::format("one launch takes about {:.2g} s: searching on the proxy problem {} (fewer tiles "
                  "of the same kernels), "
                  "confirming at full size",
                  result.stand_in->estimated_s, result.stand_in->problem.dims_text()));
  work.observer.on_phase(result.notes.back());
}

// The search has begun in an earlier part of the session: it goes on with the same problem.
void replay_plan(SessionWork& work) {
  while (work.has_recorded(TrialPhase::plan)) work.replay();
  if (!work.plan->stand_in.empty()) {
    Problem smaller = Problem::parse(work.plan->stand_in).value();
    const Work less = work.operation.work(smaller);
    work.result.stand_in = StandIn{std::move(smaller), less, work.plan->stand_in_launch_s};
  }
  tell_stand_in(work);
}

}  // namespace

// Peaks can show that a launch is too long, but not that it is short: the default may be far below
// the roofline, on an emulator by orders of magnitude. So the default is timed first, if necessary
// on successively smaller problems.
void plan_search(SessionWork& work) {
  if (work.plan) return replay_plan(work);
  constexpr int most_attempts = 3;
  SessionResult& result = work.result;
  const double longest_s = longest_launch * work.planned_s();
  work.observer.on_phase("timing the default configuration");
  const double full_s = work.peaks.roof_s(result.work) /
                        (result.device.is_cpu() ? assumed_efficiency_cpu : assumed_efficiency_gpu);
  if (full_s > longest_s) choose_stand_in(work, full_s);
  for (int attempt = 0; attempt < most_attempts && !work.stopped(); ++attempt) {
    const Space space = work.operation.space(work.search_problem(), result.device);
    if (!space.valid(result.default_config)) break;
    const TrialLimits allowed = limits_of(work, result.default_config);
    const Trial& trial = work.evaluate(work.search_problem(), result.default_config, allowed);
    if (!trial.ok() && trial.failure != Status::timeout) break;
    const double launch_s = trial.ok() ? trial.measurement.median_us * 1e-6 : 2 * allowed.run_s;
    if (launch_s <= longest_s || !choose_stand_in(work, launch_s * scale(work))) break;
  }
  tell_stand_in(work);
}

// The first candidate has no best one to be compared with, and gets what the budget allows.
TrialLimits limits_of(const SessionWork& work) {
  const Budget& budget = work.budget;
  TrialLimits limits;
  limits.cold = work.options.cold;
  const Trial* best = best_trial(work.result.trials, work.search_problem().key());
  const bool cpu = work.result.device.is_cpu();
  limits.best_us = best != nullptr ? best->measurement.median_us : 0;
  limits.run_s = best != nullptr ? std::max(cpu ? 3.0 : 1.0, 20e-6 * limits.best_us)
                                 : std::clamp(work.planned_s(), 10.0, 60.0);
  limits.compile_s = std::clamp(budget.remaining_s(), 20.0, 120.0);
  limits.measure_s = std::clamp(
      budget.kind() == Budget::Kind::seconds ? budget.amount() / 100 : 1.0, 0.1, cpu ? 1.0 : 0.5);
  return limits;
}

TrialLimits limits_of(const SessionWork& work, const Config& config) {
  TrialLimits allowed = limits_of(work);
  allowed.reject_spills = work.options.reject_spills && config != work.result.default_config;
  return allowed;
}

// The finals need a checked launch of default and winner, five rounds of both and one more check;
// after a search on a stand-in also the inputs and reference of the full problem.
double seconds_for_finals(const SessionWork& work) {
  const bool stand_in = work.result.stand_in.has_value();
  const double launches = stand_in ? 16 : 14;
  return launches * full_launch_s(work) + (stand_in ? 0.05 * work.budget.amount() : 0);
}

}  // namespace greta::tuner
