#include "tuner/model/model_tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>

#include "db/merge.hpp"
#include "runtime/pipeline/llama/needs.hpp"
#include "tuner/model/mix_timer.hpp"
#include "tuner/model/model_timer.hpp"
#include "tuner/model/scratch_database.hpp"
#include "tuner/model/timed_stop.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::model {
namespace {

constexpr std::uint64_t seed = 1;  ///< seed of random weights and prompts
/// A model that takes at most this share of the device's memory stays there while its problems are
/// tuned.
constexpr std::uint64_t kept_share = 4;

/// Copies the contents of a database to another one, which need not exist.
Result<void> merge_contents(const std::filesystem::path& from, const std::filesystem::path& to) {
  auto merged = open_database(to, TunedDb::Mode::read_write);
  if (!merged) return merged.failure();
  static_cast<void>(merged->merge(contents_of(from)));
  return {};
}

}  // namespace

void ModelObserver::on_problems(const std::vector<ModelChange>&) {}
void ModelObserver::on_plan(const TimePlan&, std::size_t, std::size_t) {}
void ModelObserver::on_distribution(const Distribution&) {}
void ModelObserver::on_result(const TaskResult&) {}
void ModelObserver::on_change(const ModelChange&) {}
void ModelObserver::on_chain(const ChainChange&) {}
void ModelObserver::on_begin(std::string_view) {}
void ModelObserver::on_phase(std::string_view, double, double) {}

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
    if (auto good = check_results(own.database); !good) return good.failure();
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

ModelTuner::Phase::Phase(const ModelTuner& tuner, std::string what)
    : tuner_(tuner), what_(std::move(what)) {
  tuner_.model_observer_.on_begin(what_);
}

ModelTuner::Phase::~Phase() {
  tuner_.model_observer_.on_phase(what_, watch_.seconds(), tuner_.watch_.seconds());
}

Result<void> ModelTuner::before_step() const {
  if (!stop_ && has_time(0)) return {};
  return Failure{Status::interrupted, stop_ ? "interrupted" : "the budget has ended", {}};
}

ModelTuner::Bench ModelTuner::open_model() {
  RuntimeOptions runtime;
  runtime.device = device_.id();
  runtime.open.cache_directory = options_.tuner.cache_directory;
  runtime.databases = files_of(options_.tuner.database);
  runtime.lookup.catalog = options_.tuner.catalog;
  runtime.lookup.allow_unsafe = options_.tuner.allow_unsafe;
  runtime.before_step = [this] { return before_step(); };
  runtime.rounded_weights = options_.rounded_weights;
  Bench bench;
  {
    const Phase phase(*this, "opening the device");
    bench.runtime = Runtime::open(runtime).value();
  }
  const LlamaConfig& config = options_.config;
  {
    const Phase phase(*this, "planning the model's memory");
    constexpr std::int64_t runners = 2;  // the model as it is, and changed
    const LlamaNeeds needs =
        load_needs(*bench.runtime, config, options_.dtype, options_.load, seed, runners);
    needs.check(device_);
    stays_loaded_ = needs.total() <= device_.memory_bytes / kept_share;
  }
  const Phase phase(*this, "loading the model's weights");
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

std::unique_ptr<LoadTimer> ModelTuner::timer(Runtime& runtime, const Bench& bench) const {
  const ModelLoad& load = options_.load;
  if (load.mix) {
    return std::make_unique<MixPassTimer>(runtime, *bench.weights,
                                          batch_options(load, options_.config), *load.mix, seed);
  }
  return std::make_unique<ModelTimer>(runtime, *bench.weights,
                                      runner_options(load, options_.config), load, seed);
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
  const auto now = TimedStop::Clock::now();
  const auto after = [&](double seconds) {
    return now + std::chrono::duration_cast<TimedStop::Clock::duration>(
                     std::chrono::duration<double>(seconds));
  };
  options.deadline = after(plan.tuning_s);
  // The last task may take longer than expected, but not the time of the comparisons.
  const double left_s = end_s_ - needs_.spent_s;
  const TimedStop stop(stop_, after(std::max(plan.tuning_s, left_s - least_comparing_s(needs_))));
  options.database = beside_database("candidates");
  if (auto begun = merge_contents(options_.tuner.database, options.database); !begun) return begun;
  std::vector<WeightedProblem> problems;
  for (const ModelChange& change : result_.changes) {
    problems.push_back({change.problem, change.share});
  }
  const Distribution distribution =
      distribute(std::move(problems), Budget::seconds(plan.tuning_s), fixed_task_s);
  model_observer_.on_plan(plan, distribution.tasks.size(), needs_.chains);
  model_observer_.on_distribution(distribution);
  const auto tuner = [&] {
    const Phase phase(*this, "opening the tuner");
    return Tuner::open(options, distribution.tasks, observer_, stop.token());
  }();
  if (!tuner && tuner.failure().status == Status::interrupted && !stop_) return {};  // no time left
  if (!tuner) return tuner.failure();
  const Phase phase(*this, "tuning problems");
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

void ModelTuner::store(const Contents& contents) const {
  TunedDb own = TunedDb::open(options_.tuner.database, TunedDb::Mode::read_write);
  own.write(contents);
  own.confirm();
}

Result<ModelResult> ModelTuner::tune() {
  watch_ = {};
  try {
    end_s_ = options_.tuner.budget.amount();
    find_problems();
    if (auto tuned = tune_problems(); !tuned) return tuned.failure();
    judge_changes();
    bench_.reset();
    if (stop_) return Failure{Status::interrupted, "interrupted; kept winners are stored", {}};
    result_.seconds = watch_.seconds();
    return result_;
  } catch (const Error& error) {
    if (stop_) {
      return Failure{Status::interrupted,
                     "interrupted; kept winners are stored, and the same command continues",
                     {}};
    }
    return Failure{error.status(), error.what(), {}};
  }
}

Result<void> ModelTuner::finish(const ModelResult& result) const {
  const auto own = open_database(options_.tuner.database, TunedDb::Mode::read_only);
  if (!own) return own.failure();
  for (const ModelChange& change : result.changes) {
    if (!change.kept && !change.kept_for_packing) continue;
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
