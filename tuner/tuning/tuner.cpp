#include "tuner/tuning/tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>

#include "db/lookup/lookup.hpp"
#include "runtime/device/system/utc.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/version.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner {
namespace {

// Share of a time budget reserved for the comparison of devices, and its time limit under a budget
// of trials.
constexpr double contest_share = 0.1;
constexpr double contest_s = 20;

/// Returns the configurations to try first, with their parameters in the space's order.
Result<std::vector<Config>> configs_to_try(const Operation& operation, const TuningTask& task,
                                           const DeviceInfo& device) {
  std::vector<Config> configs;
  if (task.try_first.empty()) return configs;
  const Space space = operation.space(task.problem, device);
  const Instance instance(operation, task.problem, device);
  for (const Config& wanted : task.try_first) {
    const auto migrated = instance.migrate(wanted);  // as an older report has it
    auto config = space.parse(migrated ? migrated->config.text() : wanted.text());
    if (!config) return bad_field("try", "", config.failure().message);
    if (!task.limits.empty() && !limited(space, task.limits).valid(*config)) {
      return bad_field("try", config->text(), "is outside the limits " + task.limits.text());
    }
    configs.push_back(*std::move(config));
  }
  return configs;
}

Result<void> check_task(const TunerOptions& options, const TuningTask& task,
                        const DeviceInfo& device) {
  const Operation& operation = options.catalog.at(task.problem.op);
  if (auto fits = check_fits(operation, task.problem, device); !fits) {
    if (task.where.empty()) return fits;
    return invalid_argument(task.where + ": " + fits.failure().message);
  }
  if (!task.limits.empty()) {
    auto within = check_limits(operation.space(task.problem, device), task.limits);
    if (!within) {
      const BadField& field = *within.failure().field;
      return bad_field(field.field, field.value, device.id() + ": " + field.reason);
    }
  }
  const auto configs = configs_to_try(operation, task, device);
  return configs ? Result<void>{} : configs.failure();
}

Result<void> check_options(const TunerOptions& options, const std::vector<TuningTask>& tasks,
                           const std::vector<ProbedDevice>& devices) {
  for (const auto& task : tasks) {
    for (const auto& device : devices) {
      if (auto good = check_task(options, task, device.info); !good) return good;
    }
  }
  for (const auto& file : options.application) {
    if (auto good = check_database("shipped", file); !good) return good;
  }
  return {};
}

/// Returns whether one session may use both devices at once: different cards of one model that run
/// the same kernels with the same driver.
bool may_share_a_pool(const DeviceInfo& a, const DeviceInfo& b) {
  return a.fingerprint() == b.fingerprint() && a.driver == b.driver && a.compiler == b.compiler &&
         a.f16_storage == b.f16_storage && a.f16_arithmetic == b.f16_arithmetic &&
         a.matrix_operations == b.matrix_operations && !same_card(a, b);
}

/// Returns a hash of everything that the trials of a run depend on, except for the seed.
std::string request_of(const TunerOptions& options, const std::vector<ProbedDevice>& devices,
                       const std::vector<TuningTask>& tasks) {
  Hash hash;
  hash.add(version()).add(options.strategy).add(options.budget.text());
  for (const bool flag :
       {options.cold, options.compare_naive, options.reject_spills, options.allow_unsafe}) {
    hash.add(std::uint64_t{flag});
  }
  hash.add(options.flush_bytes);
  for (const ProbedDevice& device : devices)
    hash.add(device.info.fingerprint()).add(device.info.driver).add(device.info.compiler);
  for (const TuningTask& task : tasks) {
    hash.add(task.problem.key()).add(options.catalog.at(task.problem.op).key());
    hash.add(task.limits.text()).add(fmt::format("{}", task.share));
    for (const Config& config : task.try_first) hash.add(config.text());
    hash.add("next task");
  }
  return hash.hex();
}

}  // namespace

Result<void> check_strategy(const std::string& text) {
  const auto parsed = parse_strategy(text);
  return parsed ? Result<void>{} : parsed.failure();
}

Result<TunedDb> open_database(const std::filesystem::path& file, TunedDb::Mode mode) {
  try {
    return TunedDb::open(file, mode);
  } catch (const Error& error) {
    return bad_field("db", "", error.what());
  }
}

Result<void> check_database(const std::string& field, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    return bad_field(field, file.string(), "there is no such file");
  }
  const auto opened = open_database(file, TunedDb::Mode::read_only);
  return opened ? Result<void>{} : bad_field(field, "", opened.failure().field->reason);
}

bool TaskResult::won() const {
  return std::all_of(sessions.begin(), sessions.end(),
                     [](const SessionResult& session) { return session.winner.has_value(); });
}

std::vector<const SessionResult*> TaskResult::entrants() const {
  std::vector<const SessionResult*> list;
  for (const auto& session : sessions) {
    if (session.winner) list.push_back(&session);
  }
  return list;
}

std::string TaskResult::not_stored() const {
  for (const auto& session : sessions) {
    if (!session.not_stored.empty()) return session.not_stored;
  }
  return {};
}

Result<std::unique_ptr<Tuner>> Tuner::open(const TunerOptions& options,
                                           const std::vector<TuningTask>& tasks,
                                           TunerObserver& observer, const std::atomic<bool>& stop) {
  try {
    if (auto known = check_strategy(options.strategy); !known) return known.failure();
    auto devices = options.allow_unsafe
                       ? select_devices(options.devices)
                       : select_safe_devices(options.devices, options.database, observer);
    if (!devices) return devices.failure();
    if (auto good = check_options(options, tasks, *devices); !good) return good.failure();
    std::vector<CardLock> locks;
    if (options.lock) {
      auto locked =
          lock_cards(*devices, options.cache_directory / "locks", options.name, observer, stop);
      if (!locked) return locked.failure();
      locks = *std::move(locked);
    }
    auto db = open_database(options.database, TunedDb::Mode::read_write);
    if (!db) return db.failure();
    std::unique_ptr<Tuner> tuner(
        new Tuner(options, observer, stop, std::move(locks), *std::move(db)));
    if (!tuner->db_.damaged().empty()) observer.on_damage(tuner->db_);
    tuner->begin_run(*devices, tasks);
    if (auto opened = tuner->open_evaluators(*devices); !opened) return opened.failure();
    return tuner;
  } catch (const Error& error) {
    return Failure{error.status(), error.what(), {}};
  }
}

Tuner::Tuner(TunerOptions options, TunerObserver& observer, const std::atomic<bool>& stop,
             std::vector<CardLock> locks, TunedDb db)
    : options_(std::move(options)),
      observer_(observer),
      stop_(stop),
      seed_(options_.seed.value_or(std::random_device()())),
      date_(utc_now()),
      locks_(std::move(locks)),
      db_(std::move(db)) {}

void Tuner::begin_run(const std::vector<ProbedDevice>& devices,
                      const std::vector<TuningTask>& tasks) {
  tasks_left_ = tasks.size();
  RunRecord run{request_of(options_, devices, tasks), seed_, options_.name, date_};
  if (tasks.size() == 1) run.command += " " + tasks.front().problem.key();
  if (options_.resume) {
    if (const auto unfinished = db_.take_unfinished_run(run.request, options_.seed)) {
      run_ = unfinished->id;
      seed_ = unfinished->seed;
      return observer_.on_resume(*unfinished);
    }
  }
  run_ = db_.begin_run(run);
}

Result<void> Tuner::open_evaluators(const std::vector<ProbedDevice>& devices) {
  EvaluatorOptions evaluator;
  evaluator.catalog = options_.catalog;
  evaluator.cache_directory = options_.cache_directory;
  evaluator.seed = seed_;
  evaluator.flush_bytes = options_.flush_bytes;
  evaluator.stop = &stop_;
  for (const auto& device : devices) {
    evaluator.device = device.info.id();
    if (!options_.allow_unsafe) {
      auto avoided = avoided_on(device.info, db_, observer_);
      if (!avoided) return avoided.failure();
      evaluator.avoid = *avoided;
    }
    if (options_.worker.empty()) {
      evaluators_.push_back(std::make_unique<LocalEvaluator>(evaluator));
    } else {
      evaluators_.push_back(std::make_unique<WorkerEvaluator>(options_.worker, evaluator));
    }
  }
  make_pools();
  return {};
}

void Tuner::make_pools() {
  std::vector<std::vector<Evaluator*>> models;
  for (const auto& evaluator : evaluators_) {
    const auto same = std::find_if(models.begin(), models.end(), [&](const auto& members) {
      return std::all_of(members.begin(), members.end(), [&](const Evaluator* member) {
        return may_share_a_pool(member->device(), evaluator->device());
      });
    });
    if (same != models.end()) {
      same->push_back(evaluator.get());
    } else {
      models.push_back({evaluator.get()});
    }
  }
  for (auto& members : models) pools_.push_back(std::make_unique<EvaluatorPool>(members));
}

SessionOptions Tuner::session_options() const {
  SessionOptions session;
  session.budget = options_.budget;
  if (pools_.size() > 1) {
    const auto parts = static_cast<double>(pools_.size());
    session.budget = options_.budget.part((1 - contest_share) / parts);
  }
  session.strategy = options_.strategy;
  session.seed = seed_;
  session.cold = options_.cold;
  session.compare_naive = options_.compare_naive;
  session.reject_spills = options_.reject_spills;
  session.started_utc = date_;
  session.run = run_;
  session.pin = options_.pin;
  return session;
}

// Returns the configurations that each database alone would answer for the problem, the user's
// first: this device's winner, that of a similar shape, or another device's.
std::vector<Config> Tuner::suggestions(const Problem& problem, const DeviceInfo& device) {
  LookupOptions options;
  options.catalog = options_.catalog;
  options.cold = options_.cold;
  options.allow_unsafe = true;  // the device is already open without the avoided features
  std::vector<LookupFiles> sources{{.own = db_.file(), .application = {}, .shipped = {}}};
  for (const auto& file : options_.application) sources.push_back({{}, {file}, {}});
  if (!options_.shipped.empty()) sources.push_back({{}, {}, options_.shipped});
  std::vector<Config> configs;
  for (const auto& files : sources) {
    const Lookup lookup = Lookup::open(device, files, options);
    const Answer& answer = lookup.find(problem);
    if (answer.origin != LookupOrigin::fallback) configs.push_back(answer.config);
    if (files.own) continue;  // on_damage() has listed its rows
    for (const auto& line : lookup.unreadable()) {
      if (unreadable_.insert(line).second) observer_.on_unreadable(line);
    }
  }
  return configs;
}

Result<TaskResult> Tuner::tune(const TuningTask& task) {
  try {
    return tune_on_each(task);
  } catch (const Error& error) {
    try {
      db_.confirm();
    } catch (const std::exception& lost) {
      observer_.on_not_stored(lost.what());
    }
    return Failure{error.status(), error.what(), {}};
  }
}

TaskResult Tuner::tune_on_each(const TuningTask& task) {
  SessionOptions options = session_options();
  options.command = options_.name + " " + task.problem.key();
  if (task.share < 1) options.budget = options.budget.part(task.share);
  TaskResult result;
  for (const auto& pool : pools_) {
    if (stop_) break;
    const DeviceInfo& device = pool->device();
    observer_.on_session(task.problem, device, pools_.size());
    const Operation& operation = options_.catalog.at(task.problem.op);
    options.try_first = configs_to_try(operation, task, device).value();
    options.limits = task.limits;
    options.suggested = suggestions(task.problem, device);
    result.sessions.push_back(
        greta::tuner::tune(*pool, db_, task.problem, options, observer_, stop_));
    if (!result.sessions.back().not_stored.empty()) return result;
  }
  compare(result, options);
  // A task that was stopped is not done, nor is the run then.
  if (!stop_ && tasks_left_ > 0 && --tasks_left_ == 0) db_.end_run(run_);
  return result;
}

void Tuner::compare(TaskResult& result, const SessionOptions& options) {
  std::vector<Entrant> entrants;
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    if (result.sessions[i].winner) entrants.push_back({pools_[i]->lead(), result.sessions[i]});
  }
  if (entrants.size() < 2 || stop_) return;
  observer_.on_phase("comparing the winners in alternating runs");
  const bool timed = options_.budget.kind() == Budget::Kind::seconds;
  try {
    result.contest = hold_contest(
        entrants, options, timed ? contest_share * options_.budget.amount() : contest_s, stop_);
  } catch (const Error& error) {
    if (error.status() != Status::interrupted) throw;
    return;
  }
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    store_lost(pools_[i]->lead().take_lost(), db_, result.sessions[i]);
  }
  for (const auto& other : result.contest->others) {
    if (other.comparison.measured()) db_.set_comparison(other.comparison);
  }
}

}  // namespace greta::tuner
