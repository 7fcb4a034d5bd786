#include <algorithm>
#include <array>

#include "runtime/pipeline/llama/packing.hpp"
#include "tuner/model/model_tuner.hpp"
#include "tuner/model/scratch_database.hpp"

/// The part of ModelTuner that compares ways to run a model.
namespace greta::tuner::model {
namespace {

// Two ways to run a model are compared after these numbers of rounds, until one is significantly
// faster. Repeated looks increase the rate of false positives, so each uses a higher confidence.
constexpr std::array looks{6, 12, 24};
constexpr double confidence = 1 - 0.05 / looks.size();
/// Limits for the tokens of a round in which a load is timed, in seconds, and as a share of the
/// budget. Half of it is for a round in which a phase is timed.
constexpr double least_round_s = 0.05, most_round_s = 0.4, round_share = 0.005;
constexpr double most_comparison_s = 20;  // which ends at the next look
constexpr double whole_share = 0.05;      // of the budget, for the last comparison

/// Returns the time of a phase in the last round.
double last_us(const LoadTimer& timer, ModelPhase phase) {
  if (phase == ModelPhase::prompt) return timer.last_prompt_us();
  return phase == ModelPhase::decode ? timer.last_token_us() : timer.last_load_us();
}

}  // namespace

/// Returns the number of tokens that a round generates. Of a slow device, it has fewer.
std::int64_t ModelTuner::steps_of_round(const LoadTimer& timer, ModelPhase phase) const {
  if (phase == ModelPhase::prompt) return 1;
  const double most_us =
      1e6 * (phase == ModelPhase::load ? 1 : 0.5) *
      std::clamp(round_share * options_.tuner.budget.amount(), least_round_s, most_round_s);
  const auto affordable = static_cast<std::int64_t>(most_us / std::max(1.0, timer.last_token_us()));
  return std::min(
      {options_.load.generated_tokens, std::int64_t{16}, std::max<std::int64_t>(2, affordable)});
}

/// Returns about how long a round takes.
double ModelTuner::round_seconds(const LoadTimer& timer, ModelPhase phase) const {
  return timer.round_seconds(steps_of_round(timer, phase));
}

/// Returns about how long the rounds up to the first look take.
double ModelTuner::shortest_rounds_s(const LoadTimer& timer) const {
  return 2 * (looks.front() + 1) * round_seconds(timer, ModelPhase::load);
}

/// Compares the times of a phase in alternating rounds, until one is significantly faster, for at
/// least `limit_s`, or until the whole time is over, which leaves the ratio of the last look. The
/// ratio is that of `base` to `changed`.
ModelTuner::PhaseTimes ModelTuner::compare(LoadTimer& base, LoadTimer& changed, ModelPhase phase,
                                           double limit_s) const {
  PhaseTimes times;
  try {
    compare_rounds(base, changed, phase, limit_s, times);
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
  }
  return times;
}

void ModelTuner::compare_rounds(LoadTimer& base, LoadTimer& changed, ModelPhase phase,
                                double limit_s, PhaseTimes& times) const {
  for (LoadTimer* timer : {&base, &changed}) timer->warm_up(2);
  const std::int64_t steps = steps_of_round(base, phase);
  const Stopwatch watch;
  for (int round = 0; round < looks.back() && !stop_ && has_time(0); ++round) {
    // The order alternates as well.
    LoadTimer* const order[] = {round % 2 == 0 ? &base : &changed,
                                round % 2 == 0 ? &changed : &base};
    for (LoadTimer* timer : order) timer->round(steps);
    times.before.push_back(last_us(base, phase));
    times.after.push_back(last_us(changed, phase));
    const auto look = std::find(looks.begin(), looks.end(), round + 1);
    if (look == looks.end()) continue;
    times.ratio = ratio_interval(times.before, times.after, confidence);
    const double next_s = look + 1 == looks.end() ? 0 : watch.seconds() / *look * *(look + 1);
    if (times.ratio->low > 1 || times.ratio->high < 1 || next_s > limit_s) break;
  }
}

/// A pinned answer stays, however much the model would gain.
bool ModelTuner::is_pinned(const Problem& problem) const {
  if (!std::filesystem::exists(options_.tuner.database)) return false;
  const TunedDb own = TunedDb::open(options_.tuner.database, TunedDb::Mode::read_only);
  return own.pinned({problem.key(), device_.fingerprint(), options_.tuner.cold}).has_value();
}

/// Opens the model with what the user's database has.
ModelTuner::Best ModelTuner::open_best(const Bench& bench) const {
  Best best;
  best.runtime = open_beside(*bench.runtime, files_of(options_.tuner.database));
  best.timer = timer(*best.runtime, bench);
  return best;
}

/// Returns the winners that the model does not run.
std::vector<ModelChange*> ModelTuner::changes_to_judge(const Best& best) {
  std::vector<ModelChange*> changes;
  for (ModelChange& change : result_.changes) {
    if (!change.winner || change.of_chain || is_pinned(change.problem)) continue;
    const Answer& now = best.runtime->lookup().find(change.problem);
    if (now.config != change.winner->winner.config) changes.push_back(&change);
  }
  return changes;
}

/// Times the model with these winners, and stores them if that is significantly faster.
void ModelTuner::judge_together(const Bench& bench, Best& best,
                                const std::vector<ModelChange*>& changes, double limit_s) {
  const Phase phase(*this,
                    "comparing " + (changes.size() > 1 ? std::to_string(changes.size()) + " winners"
                                                       : changes.front()->problem.key()));
  const ScratchDatabase scratch(beside_database("step"));
  Contents contents = contents_of(options_.tuner.database), add;
  for (const ModelChange* change : changes) {
    model_observer_.on_change(*change);
    contents = with(std::move(contents), *change->winner);
    add = with(std::move(add), *change->winner);
  }
  scratch.write(contents);
  auto runtime = open_beside(*bench.runtime, files_of(scratch.file()));
  auto changed = timer(*runtime, bench);
  const auto ratio = compare(*best.timer, *changed, ModelPhase::load, limit_s).ratio;
  for (ModelChange* change : changes) {
    change->end_to_end = ratio;
    change->out_of_time = !ratio;
    change->together = ratio && changes.size() > 1;
    change->kept = ratio && ratio->low > 1;
  }
  if (!ratio || ratio->low <= 1) return;
  store(add);
  changed.reset();          // there is memory for two runners
  best = open_best(bench);  // the scratch database goes away
}

/// Times the winners one by one, by their shares of the time, and those for which `until_s` (since
/// tune()) would come too early together.
void ModelTuner::judge_problems(const Bench& bench, Best& best, std::vector<ModelChange*> changes,
                                double until_s) {
  double last_s = needs_.comparison_s;
  for (std::size_t i = 0; i < changes.size() && !stop_; ++i) {
    const double left_s = until_s - watch_.seconds();
    const std::size_t rest = changes.size() - i;
    const bool alone = rest == 1 || left_s >= 2 * last_s;  // this one, and the others together
    const Stopwatch watch;
    const auto first = changes.begin() + static_cast<std::ptrdiff_t>(i);
    if (!has_time(last_s)) {
      std::for_each(first, changes.end(), [](ModelChange* late) { late->out_of_time = true; });
      break;
    }
    judge_together(
        bench, best, {first, alone ? first + 1 : changes.end()},
        std::min(most_comparison_s, alone ? left_s / static_cast<double>(rest) : left_s));
    last_s = watch.seconds();
    if (!alone) break;
  }
}

/// Stores winners for the choice of a packing: those that the model runs already, and those that
/// make it neither faster nor slower.
void ModelTuner::keep_packings(const Bench& bench, Best& best) {
  Contents add;
  for (ModelChange& change : result_.changes) {
    const bool slower = change.end_to_end && change.end_to_end->high < 1;
    if (!change.winner || change.kept || change.of_chain || change.out_of_time || slower ||
        !may_be_packed(change.problem) || is_pinned(change.problem)) {
      continue;
    }
    add = with(std::move(add), *change.winner);
    change.kept_for_packing = true;
  }
  if (add.results.empty()) return;
  store(add);
  best = {};
  best = open_best(bench);
}

void ModelTuner::judge_changes() {
  std::vector<ModelChange*> changes;  // until these are known: every winner
  for (ModelChange& change : result_.changes) {
    if (change.winner && !change.of_chain) changes.push_back(&change);
  }
  try {
    if (!bench_) bench_ = open_model();
    const Bench& bench = *bench_;
    Best best = open_best(bench);
    best.timer->warm_up(1);
    const double budget_s = options_.tuner.budget.amount();
    const double end_s = budget_s - whole_share * budget_s - needs_.comparison_s;
    const double left_s = end_s - watch_.seconds();
    changes = changes_to_judge(best);
    const double for_chains = share_of_chains(needs_.chains, changes.size());
    judge_problems(bench, best, changes, end_s - for_chains * std::max(0.0, left_s));
    judge_chains(bench, best, end_s);
    if (options_.keep_packings) keep_packings(bench, best);
    judge_whole(bench, best);
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
    result_.whole_out_of_time = true;
    for (ModelChange* change : changes) change->out_of_time = !change->end_to_end;
    for (ChainChange& change : result_.chains) {
      change.out_of_time = !change.end_to_end && change.why_not.empty();
    }
  }
}

/// Compares the model as it runs best with default configurations.
void ModelTuner::judge_whole(const Bench& bench, Best& best) {
  const auto plain = open_beside(*bench.runtime, LookupFiles::none());
  const auto differs = [&](const Problem& problem) {
    return plain->lookup().find(problem).config != best.runtime->lookup().find(problem).config;
  };
  const bool changed =
      std::any_of(result_.changes.begin(), result_.changes.end(),
                  [&](const ModelChange& change) { return differs(change.problem); }) ||
      std::any_of(result_.chains.begin(), result_.chains.end(),
                  [&](const ChainChange& change) { return differs(change.chain); });
  if (!changed || stop_) return;
  result_.whole_out_of_time = !has_time(needs_.comparison_s);
  if (result_.whole_out_of_time) return;
  const Phase phase(*this, "comparing with default configurations");
  const auto defaults = timer(*plain, bench);
  const double limit_s = whole_share * options_.tuner.budget.amount();
  result_.whole = compare(*defaults, *best.timer, ModelPhase::load, limit_s).ratio;
  result_.whole_out_of_time = !result_.whole;
}

}  // namespace greta::tuner::model
