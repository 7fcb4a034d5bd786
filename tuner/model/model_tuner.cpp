#include "tuner/model/model_tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "db/merge.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/model/scratch_database.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::model {
namespace {

// Two ways to run a model are compared after these numbers of rounds, until one is significantly
// faster. Repeated looks increase the rate of false positives, so each uses a higher confidence.
constexpr std::array looks{6, 12, 24};
constexpr double confidence = 1 - 0.05 / looks.size();
/// Limits for the tokens of a round in which a load or a phase is timed, in seconds.
constexpr double load_round_s = 0.4, phase_round_s = 0.2;
constexpr double most_comparison_s = 20;  // which ends at the next look
constexpr double whole_share = 0.05;      // of the budget, for the last comparison
constexpr std::uint64_t seed = 1;         ///< seed of random weights and prompts

/// Returns the time of a phase in the last round.
double last_us(const ModelTimer& timer, ModelPhase phase) {
  if (phase == ModelPhase::prompt) return timer.last_prompt_us();
  return phase == ModelPhase::decode ? timer.last_token_us() : timer.last_load_us();
}

}  // namespace

void ModelObserver::on_problems(const std::vector<ModelChange>&) {}
void ModelObserver::on_plan(const TimePlan&, std::size_t, std::size_t) {}
void ModelObserver::on_distribution(const Distribution&) {}
void ModelObserver::on_result(const TaskResult&) {}
void ModelObserver::on_change(const ModelChange&) {}
void ModelObserver::on_chain(const ChainChange&) {}

Result<std::unique_ptr<ModelTuner>> ModelTuner::open(ModelTunerOptions options,
                                                     TunerObserver& observer,
                                                     ModelObserver& model_observer,
                                                     const std::atomic<bool>& stop) {
  try {
    TunerOptions& tuner = options.tuner;
    if (tuner.budget.kind() != Budget::Kind::seconds) {
      return bad_field("budget", tuner.budget.text(), "must be a time, such as 10m");
    }
    if (auto known = check_strategy(tuner.strategy); !known) return known.failure();
    for (const auto& file : tuner.application) {
      if (auto known = check_database("shipped", file); !known) return known.failure();
    }
    const auto devices = select_devices(tuner.devices);
    if (!devices) return devices.failure();
    const bool equal = std::all_of(devices->begin(), devices->end(), [&](const auto& device) {
      return device.info.fingerprint() == devices->front().info.fingerprint();
    });
    if (!equal) {
      return bad_field("device", fmt::format("{}", fmt::join(tuner.devices, ",")),
                       "a model is tuned on one, or on equal cards");
    }
    std::unique_ptr<ModelTuner> model(
        new ModelTuner(std::move(options), observer, model_observer, stop));
    model->device_ = devices->front().info;
    TunerOptions& own = model->options_.tuner;
    own.devices.clear();
    for (const auto& device : *devices) own.devices.push_back(device.info.id());
    if (own.lock) {
      auto locks = lock_cards(*devices, own.cache_directory / "locks", own.name, observer, stop);
      if (!locks) return locks.failure();
      model->locks_ = *std::move(locks);
      own.lock = false;  // this process holds the lock
    }
    // Created, or an error, before anything runs.
    if (auto db = open_database(own.database, TunedDb::Mode::read_write); !db) return db.failure();
    return model;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

std::filesystem::path ModelTuner::beside_database(const char* what) const {
  return options_.tuner.database.string() + "." + what;
}

LlamaOptions ModelTuner::llama_options() const {
  LlamaOptions llama;
  llama.batch = options_.load.batch;
  llama.capacity = llama_capacity(options_.config, options_.load.tokens());
  return llama;
}

ModelTuner::Bench ModelTuner::open_model() const {
  RuntimeOptions runtime;
  runtime.device = device_.id();
  runtime.open.cache_directory = options_.tuner.cache_directory;
  runtime.databases = files_of(options_.tuner.database);
  runtime.lookup.catalog = options_.tuner.catalog;
  runtime.lookup.allow_unsafe = options_.tuner.allow_unsafe;
  Bench bench;
  bench.runtime = Runtime::open(runtime).value();
  const LlamaConfig& config = options_.config;
  constexpr std::int64_t runners = 2;  // the model as it is, and changed
  llama_needs(*bench.runtime, config, options_.dtype, llama_options(), options_.load.prompt_tokens,
              runners)
      .check(device_);
  bench.weights = options_.weights
                      ? upload_weights(*bench.runtime, *options_.weights, options_.dtype)
                      : random_weights(*bench.runtime, config, options_.dtype, seed);
  return bench;
}

/// Returns the databases that an application uses, with `own` as the user's.
LookupFiles ModelTuner::files_of(const std::filesystem::path& own) const {
  return {own, options_.tuner.application, options_.tuner.shipped};
}

/// Opens the same device with other databases.
std::unique_ptr<Runtime> ModelTuner::open_beside(const Runtime& runtime,
                                                 const LookupFiles& files) const {
  LookupOptions lookup;
  lookup.catalog = options_.tuner.catalog;
  lookup.allow_unsafe = options_.tuner.allow_unsafe;
  return Runtime::beside(runtime, files, lookup).value();
}

std::unique_ptr<ModelTimer> ModelTuner::timer(Runtime& runtime, const Bench& bench) const {
  return std::make_unique<ModelTimer>(runtime, *bench.weights, llama_options(), options_.load,
                                      seed);
}

/// Finds the model's problems and their shares of its time.
void ModelTuner::find_problems() {
  auto& changes = result_.changes;
  const Bench bench = open_model();
  needs_.open_s = watch_.seconds();
  auto model = timer(*bench.runtime, bench);
  model->warm_up(1);
  {
    const Stopwatch again;
    const auto warm = timer(*bench.runtime, bench);  // its kernels are compiled
    warm->warm_up(2);
    needs_.comparison_s =
        again.seconds() + 2 * (looks.front() + 1) * round_seconds(*warm, ModelPhase::load);
  }
  LlamaRunner& runner = model->runner();
  runner.reset();
  double total = 0;
  const auto add = [&](std::int64_t tokens, double times) {
    const PipelineGraph& pass = runner.pass(tokens);
    const auto spent = pass.time(runner.queue()).value();
    for (std::size_t i = 0; i < spent.size(); ++i) {
      const PreparedOperation* operation = pass.operations()[i].prepared;
      if (operation == nullptr) continue;
      auto known = std::find_if(changes.begin(), changes.end(), [&](const ModelChange& change) {
        return change.problem == operation->problem;
      });
      if (known == changes.end()) {
        changes.push_back({.problem = operation->problem});
        known = changes.end() - 1;
      }
      known->share += times * spent[i].us;
      total += times * spent[i].us;
    }
  };
  const auto passes = runner.passes(options_.load.prompt_tokens);
  model->feed_prompt();
  for (const std::int64_t tokens : passes) add(tokens, 1);
  model->feed_next();
  add(1, static_cast<double>(options_.load.generated_tokens));
  find_chains(runner);
  order_chains(*model);
  model.reset();  // its memory is free for those of the alternatives
  find_problems_of_chains(bench);
  for (ModelChange& change : changes) change.share /= std::max(total, 1e-9);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.share > b.share; });
  model_observer_.on_problems(changes);
}

/// Tunes into the database of candidates, which also uses the contents of the user's database.
Result<void> ModelTuner::tune_problems() {
  TunerOptions options = options_.tuner;
  options.provisional = true;
  needs_.budget_s = options.budget.amount();
  needs_.spent_s = watch_.seconds();
  needs_.chains = static_cast<std::size_t>(
      std::count_if(result_.chains.begin(), result_.chains.end(),
                    [](const ChainChange& change) { return change.why_not.empty(); }));
  const TimePlan plan = plan_time(needs_);
  options.deadline = std::chrono::steady_clock::now() +
                     std::chrono::duration_cast<std::chrono::steady_clock::duration>(
                         std::chrono::duration<double>(plan.tuning_s));
  options.database = beside_database("candidates");
  {
    auto candidates = open_database(options.database, TunedDb::Mode::read_write);
    if (!candidates) return candidates.failure();
    static_cast<void>(candidates->merge(contents_of(options_.tuner.database)));
  }
  std::vector<WeightedProblem> problems;
  for (const ModelChange& change : result_.changes) {
    problems.push_back({change.problem, change.share});
  }
  const Distribution distribution =
      distribute(std::move(problems), Budget::seconds(plan.tuning_s), fixed_task_s);
  model_observer_.on_plan(plan, distribution.tasks.size(), needs_.chains);
  model_observer_.on_distribution(distribution);
  const auto tuner = Tuner::open(options, distribution.tasks, observer_, stop_);
  if (!tuner) return tuner.failure();
  std::string not_stored;
  const auto tuned =
      (*tuner)->tune_all(distribution.tasks, [&](const TuningTask&, const TaskResult& result) {
        model_observer_.on_result(result);
        if (not_stored.empty()) not_stored = result.not_stored();
      });
  if (!tuned) return tuned.failure();
  if (!not_stored.empty()) return Failure{Status::io, std::move(not_stored), {}};
  if (stop_) {
    return Failure{
        Status::interrupted,
        fmt::format(
            "interrupted; the winners so far are in {}, from which the same command continues",
            options.database.string()),
        {}};
  }
  for (ModelChange& change : result_.changes) {
    change.winner =
        (*tuner)->database().find_winner(device_.fingerprint(), change.problem.key(), options.cold);
  }
  return {};
}

/// Returns the number of tokens that a round generates. Of a slow device, it has fewer.
std::int64_t ModelTuner::steps_of_round(const ModelTimer& timer, ModelPhase phase) const {
  if (phase == ModelPhase::prompt) return 1;
  const double most_us = 1e6 * (phase == ModelPhase::load ? load_round_s : phase_round_s);
  const auto affordable = static_cast<std::int64_t>(most_us / std::max(1.0, timer.last_token_us()));
  return std::min(
      {options_.load.generated_tokens, std::int64_t{16}, std::max<std::int64_t>(2, affordable)});
}

/// Returns about how long a round takes: tokens, and every eighth twice more.
double ModelTuner::round_seconds(const ModelTimer& timer, ModelPhase phase) const {
  const auto tokens = 1.25 * static_cast<double>(steps_of_round(timer, phase));
  return 1e-6 * (2 * timer.last_prompt_us() + tokens * timer.last_token_us());
}

/// Compares the times of a phase in alternating rounds, until one is significantly faster, or for
/// at least `limit_s`. The ratio is that of `base` to `changed`.
ModelTuner::PhaseTimes ModelTuner::compare(ModelTimer& base, ModelTimer& changed, ModelPhase phase,
                                           double limit_s) const {
  for (ModelTimer* timer : {&base, &changed}) timer->warm_up(2);
  const std::int64_t steps = steps_of_round(base, phase);
  const Stopwatch watch;
  PhaseTimes times;
  for (int round = 0; round < looks.back() && !stop_; ++round) {
    // The order alternates as well.
    ModelTimer* const order[] = {round % 2 == 0 ? &base : &changed,
                                 round % 2 == 0 ? &changed : &base};
    for (ModelTimer* timer : order) timer->round(steps);
    times.before.push_back(last_us(base, phase));
    times.after.push_back(last_us(changed, phase));
    const auto look = std::find(looks.begin(), looks.end(), round + 1);
    if (look == looks.end()) continue;
    times.ratio = ratio_interval(times.before, times.after, confidence);
    const double next_s = look + 1 == looks.end() ? 0 : watch.seconds() / *look * *(look + 1);
    if (times.ratio.low > 1 || times.ratio.high < 1 || next_s > limit_s) break;
  }
  return times;
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
  const Interval ratio = compare(*best.timer, *changed, ModelPhase::load, limit_s).ratio;
  for (ModelChange* change : changes) {
    change->end_to_end = ratio;
    change->together = changes.size() > 1;
    change->kept = ratio.low > 1;
  }
  if (ratio.low <= 1) return;
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
    judge_together(
        bench, best, {first, alone ? first + 1 : changes.end()},
        std::min(most_comparison_s, alone ? left_s / static_cast<double>(rest) : left_s));
    last_s = watch.seconds();
    if (!alone) break;
  }
}

void ModelTuner::judge_changes() {
  const Bench bench = open_model();
  Best best = open_best(bench);
  best.timer->warm_up(1);
  const double budget_s = options_.tuner.budget.amount(), whole_s = whole_share * budget_s;
  const double end_s = budget_s - whole_s - needs_.comparison_s, left_s = end_s - watch_.seconds();
  std::vector<ModelChange*> changes = changes_to_judge(best);
  const double for_chains = share_of_chains(needs_.chains, changes.size());
  judge_problems(bench, best, std::move(changes), end_s - for_chains * std::max(0.0, left_s));
  judge_chains(bench, best, end_s);
  const auto plain = open_beside(*bench.runtime, LookupFiles::none());
  const auto differs = [&](const Problem& problem) {
    return plain->lookup().find(problem).config != best.runtime->lookup().find(problem).config;
  };
  const bool changed =
      std::any_of(result_.changes.begin(), result_.changes.end(),
                  [&](const ModelChange& change) { return differs(change.problem); }) ||
      std::any_of(result_.chains.begin(), result_.chains.end(),
                  [&](const ChainChange& change) { return differs(change.chain); });
  if (changed && !stop_) {
    result_.whole = compare(*timer(*plain, bench), *best.timer, ModelPhase::load, whole_s).ratio;
  }
}

void ModelTuner::store(const Contents& contents) const {
  TunedDb own = TunedDb::open(options_.tuner.database, TunedDb::Mode::read_write);
  own.write(contents);
  own.confirm();
}

Result<ModelResult> ModelTuner::tune() {
  watch_ = {};
  try {
    find_problems();
    if (auto tuned = tune_problems(); !tuned) return tuned.failure();
    judge_changes();
    if (stop_) return Failure{Status::interrupted, "interrupted; kept winners are stored", {}};
    return result_;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Result<void> ModelTuner::finish(const ModelResult& result) const {
  const auto own = open_database(options_.tuner.database, TunedDb::Mode::read_only);
  if (!own) return own.failure();
  for (const ModelChange& change : result.changes) {
    if (!change.kept) continue;
    const auto found =
        own->find_winner(device_.fingerprint(), change.problem.key(), options_.tuner.cold);
    if (found && found->winner.config == change.winner->winner.config) continue;
    return Failure{Status::io,
                   fmt::format("{}: overwritten while it was used: the result of {} is not there",
                               own->file().string(), change.problem.key()),
                   {}};
  }
  for (const ChainChange& change : result.chains) {
    if (!change.kept) continue;
    const auto found =
        own->find_winner(device_.fingerprint(), change.chain.key(), options_.tuner.cold);
    if (found) continue;
    return Failure{Status::io,
                   fmt::format("{}: overwritten while it was used: the choice for {} is not there",
                               own->file().string(), change.chain.key()),
                   {}};
  }
  const ScratchDatabase done(beside_database("candidates"));  // removes it
  return {};
}

}  // namespace greta::tuner::model
