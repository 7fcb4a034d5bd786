#include "tuner/cli/tuning.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "db/lookup/lookup.hpp"
#include "runtime/device/utc.hpp"
#include "tuner/cli/checks.hpp"
#include "tuner/cli/damage.hpp"
#include "tuner/cli/interrupt.hpp"
#include "tuner/cli/locks.hpp"
#include "tuner/cli/numbers.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/safety.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/report/report.hpp"

namespace greta::tuner::cli {
namespace {

// Of a comparison of devices: the part of a time budget that is left for it, and what it gets where
// the budget is one of trials.
constexpr double contest_share = 0.1;
constexpr double contest_s = 20;

}  // namespace

void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget) {
  options.budget = budget;
  options.db = default_database();
  const std::string group = "Tuning";
  command
      .add_option("--device", options.device,
                  "auto, an id as vulkan:0, or a part of a name; a list as hip:0,vulkan:0 compares")
      ->group(group)
      ->capture_default_str();
  command.add_option("--strategy", options.strategy, names_of_strategies())
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--budget", options.budget,
                  "Time (60s, 10m), trials (500) or share of the space (5%)")
      ->group(group)
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Of inputs and search; random when left out")
      ->group(group);
  command.add_flag("--warm", options.warm, "Don't flush the caches before each sample")
      ->group(group);
  command
      .add_option(
          "--flush", options.flush,
          "MiB that flush the caches before each sample; default: by the last-level cache's size")
      ->group(group);
  command.add_flag("--naive", options.naive, "Also time a kernel with one thread per output")
      ->group(group);
  command
      .add_flag("--in-process", options.in_process,
                "Run kernels in this process, not in a worker; a crash ends the run")
      ->group(group);
  command
      .add_flag("--reject-spills", options.reject_spills,
                "Candidates that keep registers in memory fail before they run")
      ->group(group);
  command
      .add_flag("--no-lock", options.no_lock,
                "Don't wait for another greta-tune that measures on the same card")
      ->group(group);
  command
      .add_flag("--allow-unsafe", options.allow_unsafe,
                "Also use what failed its health check (greta-bench doctor)")
      ->group(group);
  add_templates_option(command);
  command.add_option("--db", options.db, "Database of trials and winners")
      ->group("Output")
      ->capture_default_str();
  command
      .add_option("--shipped", options.shipped,
                  "A database that came with an application; what it knows is tried early")
      ->group("Output");
  command.add_flag("--json", options.json, "Print one JSON object (docs/json.md)")->group("Output");
  command.add_option("--csv", options.csv, "Append rows to a CSV file (docs/csv.md)")
      ->group("Output");
}

TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode) {
  try {
    return TunedDb::open(file, mode);
  } catch (const Error& error) {
    throw CommandError(exit_usage, std::string("--db ") + error.what());
  }
}

std::filesystem::path named_database(const char* option, const std::string& file) {
  if (!std::filesystem::exists(file)) {
    throw CommandError(exit_usage, fmt::format("{} {}: there is no such file", option, file));
  }
  try {
    static_cast<void>(TunedDb::open(file, TunedDb::Mode::read_only));
  } catch (const Error& error) {
    throw CommandError(exit_usage, fmt::format("{} {}", option, error.what()));
  }
  return file;
}

void check_shipped(const std::string& file) {
  if (!file.empty()) static_cast<void>(named_database("--shipped", file));
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

void TaskResult::check_stored() const {
  for (const auto& session : sessions) {
    if (!session.not_stored.empty()) throw CommandError(exit_failed, session.not_stored);
  }
}

Tuning::Tuning(const TuningOptions& options, const std::vector<TuningTask>& tasks)
    : options_(options), budget_(read_budget(options.budget)), date_(utc_now()) {
  check_strategy(options.strategy);
  seed_ = read_seed(options.seed);
  EvaluatorOptions evaluator;
  evaluator.catalog = options.catalog;
  evaluator.cache_directory = default_cache_directory();
  evaluator.seed = seed_;
  evaluator.flush_bytes = read_flush(options.flush);
  if (options.warm && !options.flush.empty()) {
    throw CommandError(exit_usage, "--flush: flushes caches, which --warm leaves alone");
  }
  const auto devices = select_safe_devices(options.device, options.db, options.allow_unsafe);
  for (const auto& task : tasks) {
    for (const auto& device : devices) {
      check_fits(options.catalog.at(task.problem.op), task.problem, device.info, task.where);
      read_configs(options.catalog.at(task.problem.op), task.problem, device.info, task.try_first);
    }
  }
  check_shipped(options.shipped);
  check_csv("--csv", options.csv);
  catch_interrupts();
  if (!options.no_lock) locks_ = lock_cards(devices, "greta-tune");
  db_ = open_database(options.db, TunedDb::Mode::read_write);
  static_cast<void>(tell_damage(*db_));
  for (const auto& device : devices) {
    evaluator.device = device.info.id();
    evaluator.avoid = avoided_on(device.info, *db_, options.allow_unsafe);
    if (options.in_process) {
      evaluators_.push_back(std::make_unique<LocalEvaluator>(evaluator));
    } else {
      evaluators_.push_back(std::make_unique<WorkerEvaluator>(worker_command(), evaluator));
    }
  }
}

SessionOptions Tuning::session_options() const {
  SessionOptions session;
  session.budget = budget_;
  if (evaluators_.size() > 1) {
    const auto parts = static_cast<double>(evaluators_.size());
    session.budget = budget_.part((1 - contest_share) / parts);
  }
  session.strategy = options_.strategy;
  session.seed = seed_;
  session.cold = !options_.warm;
  session.compare_naive = options_.naive;
  session.reject_spills = options_.reject_spills;
  session.started_utc = date_;
  return session;
}

// What an application would run for the problem, by the user's database and by the shipped one:
// this device's own winner, a near shape's, or another device's.
std::vector<Config> Tuning::suggestions(const Problem& problem, const DeviceInfo& device) const {
  LookupOptions options;
  options.catalog = options_.catalog;
  options.cold = !options_.warm;
  options.allow_unsafe = true;  // the device is without what is to be avoided
  std::vector<LookupFiles> sources{{database(), std::nullopt}};
  if (!options_.shipped.empty()) sources.push_back({std::nullopt, options_.shipped});
  std::vector<Config> configs;
  for (const auto& files : sources) {
    const Lookup lookup = Lookup::open(device, files, options);
    const Answer& answer = lookup.find(problem);
    if (answer.origin != LookupOrigin::fallback) configs.push_back(answer.config);
  }
  return configs;
}

TaskResult Tuning::run(const TuningTask& task) {
  try {
    return tune_on_each(task);
  } catch (...) {
    tell_unless_stored(*db_);
    throw;
  }
}

TaskResult Tuning::tune_on_each(const TuningTask& task) {
  SessionOptions options = session_options();
  options.command = "greta-tune " + task.problem.key();
  if (task.share < 1) options.budget = options.budget.part(task.share);
  TaskResult result;
  for (const auto& evaluator : evaluators_) {
    if (stop_requested()) break;
    Progress progress(stderr, isatty(STDERR_FILENO) != 0);
    const DeviceInfo& device = evaluator->device();
    if (evaluators_.size() > 1) progress.on_phase(device.id() + " " + device.name);
    options.try_first =
        read_configs(options_.catalog.at(task.problem.op), task.problem, device, task.try_first);
    options.suggested = suggestions(task.problem, device);
    result.sessions.push_back(
        tune(*evaluator, *db_, task.problem, options, progress, stop_requested()));
    if (!result.sessions.back().not_stored.empty()) return result;
  }
  compare(result, options);
  return result;
}

void Tuning::compare(TaskResult& result, const SessionOptions& options) {
  std::vector<Entrant> entrants;
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    if (result.sessions[i].winner) entrants.push_back({*evaluators_[i], result.sessions[i]});
  }
  if (entrants.size() < 2 || stop_requested()) return;
  Progress(stderr, false).on_phase("comparing the winners in alternating turns");
  const bool timed = budget_.kind() == Budget::Kind::seconds;
  result.contest = hold_contest(
      entrants, options, timed ? contest_share * budget_.amount() : contest_s, stop_requested());
  for (std::size_t i = 0; i < result.sessions.size(); ++i) {
    store_lost(*evaluators_[i], *db_, result.sessions[i]);
  }
  for (const auto& other : result.contest->others) {
    if (other.comparison.measured()) db_->set_comparison(other.comparison);
  }
}

void Tuning::write_csv(const TaskResult& result) {
  if (options_.csv.empty()) return;
  for (const auto& session : result.sessions) {
    const auto written = append_csv(options_.csv, csv_rows(session, !options_.warm, date_));
    if (!written) {
      throw CommandError(exit_failed, fmt::format("--csv {}; the trials are in {}",
                                                  written.failure().message, database().string()));
    }
  }
}

bool Tuning::interrupted() const {
  return stop_requested();
}

}  // namespace greta::tuner::cli
