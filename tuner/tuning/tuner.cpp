#include "tuner/tuning/tuner.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <future>
#include <random>
#include <thread>

#include "runtime/device/system/utc.hpp"
#include "runtime/device/text/hash.hpp"
#include "runtime/device/version.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/search/strategy.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner {
namespace {

Result<void> check_form(const TunerOptions& options, const TuningTask& task,
                        const DeviceInfo& device) {
  const Operation& operation = options.catalog.at(task.problem.op);
  if (auto fits = check_fits(operation, task.problem, device); !fits) {
    if (task.where.empty()) return fits;
    return invalid_argument(task.where + ": " + fits.failure().message);
  }
  // A description's constraints may have no value, or take too long: said before anything runs.
  if (!operation.sources_key.empty()) operation.space(task.problem, device).count();
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

Result<void> check_task(const TunerOptions& options, const TuningTask& task,
                        const DeviceInfo& device) {
  TuningTask one = task;
  for (const Problem& form : task.forms()) {
    one.problem = form;
    if (auto good = check_form(options, one, device); !good) return good;
  }
  return {};
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
  return check_results(options.database);
}

/// Returns whether another card of the same model is among the devices.
bool has_twin(const std::vector<ProbedDevice>& devices, const DeviceInfo& device) {
  return std::any_of(devices.begin(), devices.end(), [&](const ProbedDevice& other) {
    return other.info.id() != device.id() && other.info.fingerprint() == device.fingerprint();
  });
}

/// Returns a hash of everything that the trials of a run depend on, except for the seed.
std::string request_of(const TunerOptions& options, const std::vector<ProbedDevice>& devices,
                       const std::vector<TuningTask>& tasks) {
  Hash hash;
  hash.add(version()).add(options.strategy).add(options.budget.text());
  for (const bool flag :
       {options.cold, options.compare_naive, options.reject_spills, options.allow_unsafe,
        options.retry_failed, options.for_energy, options.allow_vendor}) {
    hash.add(std::uint64_t{flag});
  }
  hash.add(options.flush_bytes).add(static_cast<std::uint64_t>(options.rounds));
  for (const ProbedDevice& device : devices)
    hash.add(device.info.fingerprint()).add(device.info.driver).add(device.info.compiler);
  for (const TuningTask& task : tasks) {
    hash.add(task.problem.key()).add(options.catalog.at(task.problem.op).key());
    for (const Problem& form : task.beside) hash.add(form.key());
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

Result<void> check_results(const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) return {};
  const auto opened = open_database(file, TunedDb::Mode::read_write);
  return opened ? Result<void>{} : opened.failure();
}

Result<void> check_database(const std::string& field, const std::filesystem::path& file) {
  if (!std::filesystem::exists(file)) {
    return bad_field(field, file.string(), "there is no such file");
  }
  const auto opened = open_database(file, TunedDb::Mode::read_only);
  return opened ? Result<void>{} : bad_field(field, "", opened.failure().field->reason);
}

std::vector<Problem> TuningTask::forms() const {
  std::vector<Problem> all{problem};
  all.insert(all.end(), beside.begin(), beside.end());
  return all;
}

bool TaskResult::won() const {
  return given_up.empty() &&
         std::all_of(sessions.begin(), sessions.end(),
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
    const auto damaged = tuner->db_.damaged_but_trials();
    if (!damaged.empty()) observer.on_damage(tuner->db_, damaged);
    tuner->begin_run(*devices, tasks);
    if (auto opened = tuner->open_evaluators(*devices, tasks); !opened) return opened.failure();
    std::vector<Evaluator*> evaluators;
    for (const auto& evaluator : tuner->evaluators_) evaluators.push_back(evaluator.get());
    tuner->lanes_ = std::make_unique<Lanes>(evaluators, tasks.size(),
                                            RunContext{tuner->options_, tuner->seed_, tuner->date_,
                                                       tuner->db_, observer, stop, tuner->run_});
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

std::unique_ptr<Evaluator> Tuner::open_evaluator(const EvaluatorOptions& options) const {
  if (options_.worker.empty()) return std::make_unique<LocalEvaluator>(options);
  return std::make_unique<WorkerEvaluator>(options_.worker, options);
}

/// Whether a vendor's library computes one of the tasks, and is of interest on the device.
bool Tuner::wants_vendor(const DeviceInfo& device, const std::vector<TuningTask>& tasks) const {
  if (device.is_cpu() && !options_.allow_vendor) return false;
  return std::any_of(tasks.begin(), tasks.end(), [&](const TuningTask& task) {
    return has_vendor(options_.catalog.at(task.problem.op));
  });
}

Result<void> Tuner::open_evaluators(const std::vector<ProbedDevice>& devices,
                                    const std::vector<TuningTask>& tasks) {
  EvaluatorOptions shared;
  shared.catalog = options_.catalog;
  shared.cache_directory = options_.cache_directory;
  shared.seed = seed_;
  shared.flush_bytes = options_.flush_bytes;
  shared.keep_failed = options_.keep_failed;
  shared.stop = &stop_;
  if (devices.size() > 1) {
    slots_.emplace(std::max(1, static_cast<int>(std::thread::hardware_concurrency())));
    shared.compile_slots = slots_->path();
    shared.compile_slot_count = slots_->count();
  }
  std::vector<std::future<std::unique_ptr<Evaluator>>> opening;
  for (const auto& device : devices) {
    EvaluatorOptions own = shared;
    own.device = device.info.address();
    own.vendor = wants_vendor(device.info, tasks);
    if (!options_.allow_unsafe) {
      auto avoided = avoided_on(device.info, db_, observer_);
      if (!avoided) return avoided.failure();
      own.avoid = *avoided;
    }
    opening.push_back(std::async(devices.size() > 1 ? std::launch::async : std::launch::deferred,
                                 [this, own] { return open_evaluator(own); }));
  }
  std::exception_ptr error;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    try {
      evaluators_.push_back(opening[i].get());
    } catch (const Error& failure) {
      error = std::current_exception();
      const DeviceInfo& device = devices[i].info;
      if (!is_of_the_card(failure.status()) || !has_twin(devices, device)) throw;
      observer_.on_card_lost(device.id() + ": " + failure.what());
    }
  }
  if (evaluators_.empty()) std::rethrow_exception(error);
  return {};
}

Result<void> Tuner::tune_all(const std::vector<TuningTask>& tasks, const Lanes::Done& done) {
  auto tuned = lanes_->run(tasks, [&](const TuningTask& task, const TaskResult& result) {
    // A task that was stopped is not done, nor is the run then.
    const bool ended = !stop_ && result.not_stored().empty();
    if (ended && tasks_left_ > 0 && --tasks_left_ == 0) db_.end_run(run_);
    done(task, result);
  });
  if (tuned) return tuned;
  try {
    db_.confirm();
  } catch (const std::exception& lost) {
    observer_.on_not_stored(lost.what());
  }
  return tuned;
}

Result<TaskResult> Tuner::tune(const TuningTask& task) {
  TaskResult result;
  const auto tuned =
      tune_all({task}, [&](const TuningTask&, const TaskResult& finished) { result = finished; });
  if (!tuned) return tuned.failure();
  return result;
}

}  // namespace greta::tuner
