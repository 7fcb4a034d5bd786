#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "kernels/chains/chains.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/system/utc.hpp"
#include "runtime/device/version.hpp"
#include "tuner/model/model_tuner.hpp"
#include "tuner/model/scratch_database.hpp"

/// The part of ModelTuner that decides about chains of operations.
namespace greta::tuner::model {
namespace {

/// What the time of a problem that only an alternative runs counts, when the budget is distributed:
/// few alternatives are kept.
constexpr double weight_of_alternatives = 0.25;
constexpr double most_chain_s = 5;         // for the comparison of one, which ends at the next look
constexpr double most_for_problems = 0.2;  // share of the budget after which none are added

/// Returns the rule that forces an alternative for a chain.
std::string rule_of(const ChainChange& change) {
  return fmt::format("{} dtype={} {}: {}", change.chain.op, to_string(change.chain.dtype),
                     change.chain.dims_text(), change.alternative);
}

}  // namespace

std::vector<std::string> other_alternatives(const ChosenChain& chosen, const DeviceInfo& device) {
  std::vector<std::string> others;
  for (const Variant& variant : chains().at(chosen.chain.op).variants) {
    const bool runs_as_another = chosen.instead.contains(variant.name);
    if (variant.name == chosen.answer.config.variant || runs_as_another) continue;
    if (chains().valid(chosen.chain, device, {variant.name, {}})) others.push_back(variant.name);
  }
  return others;
}

/// Adds the alternatives of chains that are not known yet.
void ModelTuner::find_chains(LoadTimer& timer) {
  for (const LoadPass& pass : timer.passes()) {
    for (const ChosenChain& chosen : timer.pass(pass.shape).chains()) {
      const auto known = [&](const ChainChange& change) { return change.chain == chosen.chain; };
      if (std::any_of(result_.chains.begin(), result_.chains.end(), known)) continue;
      if (is_pinned(chosen.chain)) continue;
      for (const std::string& alternative : other_alternatives(chosen, device_)) {
        ChainChange& change = result_.chains.emplace_back();
        change.chain = chosen.chain;
        change.alternative = alternative;
        change.instead_of = chosen.answer.config.variant;
        change.phase = pass.phase;
        change.pass = pass;
      }
    }
  }
}

/// Puts the alternatives of the phase with the longer time first, which the budget reaches first.
void ModelTuner::order_chains(const LoadTimer& timer) {
  const double decode_us = timer.last_load_us() - timer.last_prompt_us();
  const ModelPhase longer =
      decode_us > timer.last_prompt_us() ? ModelPhase::decode : ModelPhase::prompt;
  std::stable_partition(result_.chains.begin(), result_.chains.end(),
                        [&](const ChainChange& change) { return change.phase == longer; });
}

/// Runs the model once with each alternative, and adds the problems that it does not run now. For
/// alternatives after a part of the budget is spent, none are added: they are timed with the
/// configurations that look-up finds.
void ModelTuner::find_problems_of_chains(const Bench& bench) {
  const double end_s = most_for_problems * options_.tuner.budget.amount();
  double last_s = 0;  // what the one before took
  for (ChainChange& change : result_.chains) {
    if (stop_ || watch_.seconds() + last_s > end_s) return;
    const Phase phase(
        *this, "finding the problems of " + change.alternative + " of " + change.chain.key());
    const Stopwatch watch;
    try {
      const auto runtime = open_beside(*bench.runtime, files_of(options_.tuner.database));
      runtime->use(rule_of(change)).value();
      const auto model = timer(*runtime, bench);
      const PipelineGraph& pass = model->ready(change.pass);
      const auto spent = pass.time(model->queue()).value();
      const double times = change.pass.times;
      std::unordered_map<Problem, double, ProblemHash> us;
      for (std::size_t i = 0; i < spent.size(); ++i) {
        const PreparedOperation* const operation = pass.operations()[i].prepared;
        if (operation == nullptr) continue;
        const Problem& problem = operation->problem;
        const auto same = [&](const ModelChange& one) { return one.problem == problem; };
        auto known = std::find_if(result_.changes.begin(), result_.changes.end(), same);
        if (known != result_.changes.end() && !known->of_chain) continue;
        if (known == result_.changes.end()) {
          result_.changes.push_back({.problem = problem, .of_chain = true});
          known = result_.changes.end() - 1;
        }
        const auto& own = change.problems;
        if (std::find(own.begin(), own.end(), problem) == own.end()) {
          change.problems.push_back(problem);
        }
        us[problem] += times * spent[i].us;
      }
      for (ModelChange& one : result_.changes) {
        // Several alternatives may run the same problem.
        const auto spent_here = us.find(one.problem);
        if (spent_here != us.end()) {
          one.share = std::max(one.share, weight_of_alternatives * spent_here->second);
        }
      }
    } catch (const Error& error) {
      if (!before_step()) throw;
      change.why_not = error.what();
    }
    last_s = watch.seconds();
  }
}

/// Returns the winners of an alternative's own problems that were found and are not used now.
std::vector<StoredWinner> ModelTuner::winners_of(const ChainChange& change) const {
  std::vector<StoredWinner> winners;
  for (const ModelChange& one : result_.changes) {
    if (!one.of_chain || !one.winner || one.kept || is_pinned(one.problem)) continue;
    if (!std::count(change.problems.begin(), change.problems.end(), one.problem)) continue;
    winners.push_back(*one.winner);
  }
  return winners;
}

/// Returns a choice as a result, with the times of the phase in which the chain runs.
StoredWinner ModelTuner::choice_of(const ChainChange& change, const PhaseTimes& times) const {
  const Operation& chain = chains().at(change.chain.op);
  StoredWinner choice;
  choice.problem = change.chain;
  choice.device = device_;
  choice.device_id = device_.id();
  choice.provenance = {std::string(version()), chain.key(), device_.driver, device_.compiler,
                       utc_now()};
  Winner& winner = choice.winner;
  winner.config = {change.alternative, {}};
  winner.is_default = winner.config == chain.default_config(change.chain, device_);
  winner.default_us = median(times.before);
  winner.default_samples_us = times.before;
  const Interval ratio = times.ratio.value_or(Interval{});
  winner.speedup = ratio.estimate;
  winner.speedup_low = ratio.low;
  winner.speedup_high = ratio.high;
  winner.rounds = static_cast<int>(times.after.size());
  const Interval us = median_interval(times.after, 0.95);
  winner.measurement.samples_us = times.after;
  winner.measurement.median_us = us.estimate;
  winner.measurement.low_us = us.low;
  winner.measurement.high_us = us.high;
  winner.measurement.p99_us = *std::max_element(times.after.begin(), times.after.end());
  winner.measurement.cold = winner.cold = options_.tuner.cold;
  winner.verdict.passed = true;
  winner.verdict.method = "its operations were checked one by one";
  return choice;
}

void replace_others(std::vector<ChainChange>& all, const ChainChange& kept) {
  for (ChainChange& one : all) {
    if (!(one.chain == kept.chain) || one.alternative == kept.alternative || !one.kept) continue;
    one.kept = false;
    one.replaced = true;
  }
}

/// Times the model with an alternative, and stores the choice if that is significantly faster.
void ModelTuner::judge_chain(const Bench& bench, Best& best, ChainChange& change, double limit_s) {
  const auto now = best.runtime->choose(change.chain);
  if (!now || now->config.variant == change.alternative) return;
  change.instead_of = now->config.variant;
  model_observer_.on_chain(change);
  const Phase phase(*this, "comparing " + change.alternative + " of " + change.chain.key());
  const ScratchDatabase scratch(beside_database("step"));
  Contents contents = contents_of(options_.tuner.database);
  const std::vector<StoredWinner> winners = winners_of(change);
  for (const StoredWinner& winner : winners) contents = with(std::move(contents), winner);
  PhaseTimes untimed;
  untimed.before = untimed.after = {1.0};
  scratch.write(with(std::move(contents), choice_of(change, untimed)));
  auto runtime = open_beside(*bench.runtime, files_of(scratch.file()));
  auto changed = timer(*runtime, bench);
  const PhaseTimes times = compare(*best.timer, *changed, change.phase, limit_s);
  change.end_to_end = times.ratio;
  change.out_of_time = !times.ratio;
  change.kept = times.ratio && times.ratio->low > 1;
  if (!change.kept) return;
  Contents add;
  for (const StoredWinner& winner : winners) add = with(std::move(add), winner);
  store(with(std::move(add), choice_of(change, times)));
  for (ModelChange& one : result_.changes) {
    one.kept = one.kept || std::any_of(winners.begin(), winners.end(), [&](const auto& stored) {
                 return stored.problem == one.problem;
               });
  }
  changed.reset();
  best = open_best(bench);  // the scratch database goes away
}

/// A choice can pose other chains, which are judged, too: the sum of a norm that is apart may be
/// normalised where it is computed.
void ModelTuner::judge_chains(const Bench& bench, Best& best, double until_s) {
  double last_s = needs_.comparison_s;
  bool timed = false;  // one of them
  for (std::size_t i = 0; i < result_.chains.size() && !stop_; ++i) {
    ChainChange change = result_.chains[i];
    if (!change.why_not.empty()) continue;
    const double left_s = until_s - watch_.seconds();
    const Stopwatch watch;
    // One is timed beyond their part of the time, if there is any left.
    change.out_of_time = !has_time(last_s) || (timed && left_s < last_s);
    try {
      const double part_s = left_s / static_cast<double>(result_.chains.size() - i);
      if (!change.out_of_time) judge_chain(bench, best, change, std::min(most_chain_s, part_s));
    } catch (const Error& error) {
      if (error.status() != Status::interrupted) change.why_not = error.what();
      change.out_of_time = error.status() == Status::interrupted && !change.end_to_end;
    }
    result_.chains[i] = change;
    if (change.kept) replace_others(result_.chains, change);
    if (change.end_to_end) last_s = watch.seconds();
    timed = timed || change.end_to_end.has_value();
    if (change.kept) find_chains(*best.timer);
  }
}

}  // namespace greta::tuner::model
