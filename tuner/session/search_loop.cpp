#include "tuner/session/search_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "tuner/measure/stopwatch.hpp"
#include "tuner/search/ranking.hpp"
#include "tuner/session/search_plan.hpp"
#include "tuner/session/seeds.hpp"

namespace greta::tuner {

void SearchLoop::run() {
  if (work_.stopped()) return;
  const Space space = limited(work_.operation.space(work_.search_problem(), work_.result.device),
                              work_.options.limits);
  if (space.count() == 0) {
    work_.result.notes.push_back(
        "the proxy problem has no configuration within the limits, so that "
        "nothing was searched; a longer budget searches the problem itself");
    return;
  }
  work_.observer.on_phase(space.count() == 1
                              ? "searching the only configuration"
                              : fmt::format("searching {} configurations", space.count()));
  work_.phase = TrialPhase::search;
  const Lap lap(work_.result.time.search);
  const auto strategy = create_strategy(
      work_.options.strategy,
      {&space, first_of(space), work_.options.seed, work_.budget.trial_limit(),
       static_prior(work_.operation, work_.search_problem(), work_.result.device, space)});
  replay(*strategy, space);
  // The default, the user's configurations, the winners of earlier sessions and the answer of
  // look-ups are tried regardless of the budget.
  const std::size_t least = first_seeds(space, work_.result, work_.options).size();
  const auto more = [&] {
    return !work_.stopped() &&
           (work_.result.trials.size() < least || (!work_.budget.spent() && time_for_finals()));
  };
  while (more()) {
    const auto tried = work_.result.trials.size();
    ask(*strategy, space,
        std::max(work_.budget.remaining_trials(), least - std::min(least, tried)));
    if (work_.pool.in_flight() == 0) break;
    tell(*strategy, space, work_.pool.next());
  }
  if (work_.stopped()) {
    work_.drain();
    return;
  }
  work_.pool.cancel();
  while (work_.pool.in_flight() > 0) tell(*strategy, space, work_.pool.next());
}

std::vector<Choice> SearchLoop::first_of(const Space& space) {
  if (!work_.plan) {
    const auto& stand_in = work_.result.stand_in;
    work_.plan =
        SearchPlan{seeds(work_.operation, space, work_.result, work_.options, work_.db),
                   stand_in ? stand_in->problem.key() : "", stand_in ? stand_in->estimated_s : 0};
    work_.store([&] { work_.db.set_plan(work_.result.id, *work_.plan); });
  }
  std::vector<Choice> first;
  for (const Config& config : work_.plan->first) {
    if (auto choice = space.choice(config)) first.push_back(*std::move(choice));
  }
  return first;
}

std::optional<Config> SearchLoop::ask_once(Strategy& strategy, const Space& space) {
  const Lap lap(work_.result.time.strategy);
  ++asks_;
  const auto choice = strategy.ask();
  exhausted_ = !choice;
  if (!choice) return std::nullopt;
  Config config = space.config(*choice);
  const std::string key = work_.search_problem().key();
  const Trial* known = find_trial(work_.result.trials, config, key);
  if (known == nullptr) known = work_.forbidden(config, key);
  if (known == nullptr) return config;
  strategy.tell(*choice, *known);
  return std::nullopt;
}

// A strategy is deterministic: it chooses the same configurations if it is asked as often between
// the same results. So every trial is stored with the number of asks before it.
void SearchLoop::replay(Strategy& strategy, const Space& space) {
  std::vector<Config> in_flight;
  while (work_.has_recorded(TrialPhase::search)) {
    while (asks_ < work_.recorded.front().asks.value_or(0)) {
      if (auto config = ask_once(strategy, space)) in_flight.push_back(*std::move(config));
    }
    const auto next = std::find(in_flight.begin(), in_flight.end(), work_.recorded.front().config);
    if (next == in_flight.end()) {
      work_.result.notes.push_back(
          fmt::format("{} recorded trials of the unfinished run are not used: the strategy chooses "
                      "others now",
                      work_.recorded.size()));
      work_.recorded.clear();
      break;
    }
    in_flight.erase(next);
    const Trial& trial = work_.replay();
    strategy.tell(*space.choice(trial.config), trial);
  }
  if (work_.stopped()) return;
  for (const Config& config : in_flight)
    work_.pool.evaluate(work_.search_problem(), config, limits_of(work_, config));
}

// Queues as many candidates as the pool accepts, with at most `most` in flight.
void SearchLoop::ask(Strategy& strategy, const Space& space, std::uint64_t most) {
  for (int free = work_.pool.free(); free > 0 && work_.pool.in_flight() < most;) {
    const auto config = ask_once(strategy, space);
    if (exhausted_) return;
    if (!config) continue;
    work_.pool.evaluate(work_.search_problem(), *config, limits_of(work_, *config));
    --free;
  }
}

void SearchLoop::tell(Strategy& strategy, const Space& space, Evaluated evaluated) {
  if (!evaluated.retired.empty()) {
    work_.result.notes.push_back(evaluated.retired + "; the search continued without it");
  }
  work_.store_lost(std::move(evaluated.lost));
  if (evaluated.trial.failure == Status::interrupted) return;
  const auto choice = space.choice(evaluated.trial.config);
  evaluated.trial.asks = asks_;
  const auto at_once = static_cast<double>(work_.pool.size());
  work_.result.time.waiting += evaluated.waited_s / at_once;
  const Trial& trial = work_.record(std::move(evaluated.trial), at_once);
  if (choice) {
    const Lap lap(work_.result.time.strategy);
    strategy.tell(*choice, trial);
  }
  work_.pool.set_limits(limits_of(work_));
}

bool SearchLoop::time_for_finals() {
  if (work_.budget.kind() != Budget::Kind::seconds) return true;
  const double budget_s = work_.budget.amount(), needed = seconds_for_finals(work_);
  if (needed > 0.6 * budget_s && !warned_) {
    work_.result.notes.push_back(fmt::format(
        "certifying takes about {:.0f} s at this size, much of the budget or more than it",
        needed));
    warned_ = true;
  }
  return work_.budget.remaining_s() > std::clamp(needed, 0.1 * budget_s, 0.6 * budget_s);
}

}  // namespace greta::tuner
