#include "tuner/session/search_loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

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
  std::vector<Choice> first;
  for (const Config& config : seeds(space, work_.result, work_.options, work_.db))
    first.push_back(*space.choice(config));
  const auto strategy =
      find_strategy(work_.options.strategy)->create({&space, std::move(first), work_.options.seed});
  // The default and the user's configurations are tried regardless of the budget.
  const std::size_t least = 1 + work_.options.try_first.size();
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
  work_.pool.cancel();
  while (work_.pool.in_flight() > 0) tell(*strategy, space, work_.pool.next());
}

// Queues as many candidates as the pool accepts, with at most `most` in flight.
void SearchLoop::ask(Strategy& strategy, const Space& space, std::uint64_t most) {
  const std::string key = work_.search_problem().key();
  for (int free = work_.pool.free(); free > 0 && work_.pool.in_flight() < most;) {
    const auto choice = strategy.ask();
    if (!choice) return;
    const Config config = space.config(*choice);
    if (const Trial* known = find_trial(work_.result.trials, config, key)) {
      strategy.tell(*choice, *known);
    } else {
      work_.pool.evaluate(work_.search_problem(), config, limits_of(work_, config));
      --free;
    }
  }
}

void SearchLoop::tell(Strategy& strategy, const Space& space, Evaluated evaluated) {
  if (!evaluated.retired.empty()) {
    work_.result.notes.push_back(evaluated.retired + "; the search continued without it");
  }
  work_.store_lost(std::move(evaluated.lost));
  if (evaluated.trial.failure == Status::interrupted) return;
  const auto choice = space.choice(evaluated.trial.config);
  const Trial& trial =
      work_.record(std::move(evaluated.trial), static_cast<double>(work_.pool.size()));
  if (choice) strategy.tell(*choice, trial);
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
