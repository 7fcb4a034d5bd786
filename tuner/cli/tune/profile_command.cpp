#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>

#include "db/lookup/lookup.hpp"
#include "kernels/catalog.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/cli/options/database_options.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/tune/commands.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/profile/profile_report.hpp"
#include "tuner/profile/profiler.hpp"
#include "tuner/report/print.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner::cli {
namespace {

namespace fs = std::filesystem;

struct ProfileOptions {
  ProblemRequest problem;
  std::vector<std::string> configs;
  bool winner = false, fallback = false;
  std::string device = "auto";
  fs::path db = default_database();
  KnownDatabases known;
  std::string seed = "0";
  std::vector<std::string> allow;
  int timeout_s = 30;
  double seconds = 5;
  bool warm = false, energy = false, no_lock = false, allow_unsafe = false;
  bool launch_only = false, json = false;
};

/// One run of greta-tune profile.
class ProfileRun {
 public:
  ProfileRun(const Operation& operation, const ProfileOptions& options)
      : operation_(operation), options_(options) {}
  int run();

 private:
  void select();
  DeviceInfo info() const { return without(device_->info, evaluator_.avoid); }
  std::vector<ProfileRequest::Way> ways() const;
  std::optional<Config> winner() const;
  std::vector<Ceiling> ceilings(Evaluator& evaluator);
  std::vector<CardLock> lock() const;
  int launch_only();

  const Operation& operation_;
  const ProfileOptions& options_;
  Problem problem_;
  std::optional<TunedDb> db_;
  std::optional<ProbedDevice> device_;
  EvaluatorOptions evaluator_;
};

void ProfileRun::select() {
  auto problem = make_problem(operation_, options_.problem);
  if (!problem) throw bad_option(problem.failure());
  problem_ = *std::move(problem);
  const auto devices = select_safe_devices(devices_for(operation_.name, options_.device),
                                           options_.db, options_.allow_unsafe);
  if (devices.size() != 1) {
    throw CommandError(exit_usage, fmt::format("--device {}: must be one device", options_.device));
  }
  device_ = devices.front();
  db_.emplace(open_database(options_.db, TunedDb::Mode::read_write));
  evaluator_.catalog = operations_in_use();
  evaluator_.device = device_->info.id();
  evaluator_.cache_directory = default_cache_directory();
  evaluator_.seed = read_seed(options_.seed);
  evaluator_.stop = &stop_requested();
  evaluator_.avoid = avoided_on(device_->info, *db_, options_.allow_unsafe);
  evaluator_.vendor = allows(options_.allow, "vendor");
  value_of(check_fits(operation_, problem_, device_->info));
}

/// Returns what a runtime finds for the problem, or nothing if that is the default.
std::optional<Config> ProfileRun::winner() const {
  LookupOptions lookup;
  lookup.catalog = evaluator_.catalog;
  lookup.cold = !options_.warm;
  lookup.allow_unsafe = true;  // the features to avoid are already known
  LookupFiles files = known_files(options_.known);
  files.own = options_.db;
  const Lookup known = Lookup::open(info(), files, lookup);
  for (const auto& line : known.unreadable()) tell(line);
  const Answer& answer = known.find(problem_);
  if (answer.origin == LookupOrigin::fallback) return std::nullopt;
  if (answer.origin != LookupOrigin::exact) {
    tell(fmt::format("{} is not tuned on {}: winner is by {}", problem_.key(), device_->info.id(),
                     answer.origin_text()));
  }
  return answer.config;
}

/// Returns the ways to profile: those that the options name, else default and winner.
std::vector<ProfileRequest::Way> ProfileRun::ways() const {
  const bool both = !options_.winner && !options_.fallback && options_.configs.empty();
  std::vector<ProfileRequest::Way> list;
  const auto add = [&](const std::string& name, const Config& config) {
    const auto same = std::find_if(list.begin(), list.end(),
                                   [&](const auto& way) { return way.config == config; });
    if (same == list.end()) {
      list.push_back({name, config});
    } else if (same->name != name) {
      tell(fmt::format("the {} is the {}", name, same->name));
    }
  };
  if (both || options_.fallback) add("default", operation_.default_config(problem_, info()));
  if (both || options_.winner) {
    if (const auto found = winner()) {
      add("winner", *found);
    } else if (options_.winner) {
      throw CommandError(exit_failed, fmt::format("--winner: no database has a winner for {} on {}",
                                                  problem_.key(), device_->info.id()));
    } else {
      tell(
          fmt::format("no database has a winner for {} on {}", problem_.key(), device_->info.id()));
    }
  }
  const Space space = operation_.space(problem_, info());
  for (std::size_t i = 0; i < options_.configs.size(); ++i) {
    const auto config = space.parse(in_numbers(operation_.name, options_.configs[i], "--config"));
    if (!config) throw CommandError(exit_usage, "--config: " + config.failure().message);
    add(options_.configs.size() == 1 ? "config" : fmt::format("config {}", i + 1), *config);
  }
  return list;
}

std::vector<Ceiling> ProfileRun::ceilings(Evaluator& evaluator) {
  auto known = db_->ceilings(evaluator.device().fingerprint());
  try {
    for (const std::string& kind : missing_kinds(known, evaluator.device())) {
      tell("measuring peak " + kind);
      const auto measured = evaluator.measure_ceilings({kind});
      db_->set_ceilings(evaluator.device(), measured);
      update(known, measured);
    }
  } catch (const Error& error) {
    if (error.status() == Status::interrupted) throw;
    known.clear();
    tell(std::string("no peaks, so no share of the roofline: ") + error.what());
  }
  return known;
}

/// Waits for the card, unless --no-lock is given.
std::vector<CardLock> ProfileRun::lock() const {
  if (options_.no_lock) return {};
  return lock_cards({*device_}, "greta-tune");
}

int ProfileRun::launch_only() {
  const auto chosen = ways();
  if (chosen.size() != 1) {
    throw CommandError(exit_usage,
                       "--launch-only: takes one configuration: --config, --winner or --default");
  }
  const auto locks = lock();
  const auto launched =
      launch_once(evaluator_, problem_, chosen.front().config, !options_.warm, options_.timeout_s);
  if (!launched) throw CommandError(exit_failed, launched.failure().message);
  tell(fmt::format("launched {} once", chosen.front().config.shown()));
  return exit_done;
}

int ProfileRun::run() {
  catch_interrupts();
  select();
  if (options_.launch_only) return launch_only();
  const auto locks = lock();
  ProfileRequest request{.problem = problem_,
                         .ways = ways(),
                         .cold = !options_.warm,
                         .run_s = static_cast<double>(options_.timeout_s),
                         .seconds = options_.seconds,
                         .energy = options_.energy,
                         .seed = evaluator_.seed};
  WorkerEvaluator timing(worker_command(), evaluator_);
  request.ceilings = ceilings(timing);
  const auto counting = [&] {
    EvaluatorOptions counts = evaluator_;
    counts.counters = true;
    return std::make_unique<WorkerEvaluator>(worker_command(), counts);
  };
  const Profile found = profile(timing, counting, request, [](const auto& what) { tell(what); });
  for (const ProfiledWay& way : found.ways) {
    if (way.counters)
      db_->set_counters(timing.device(), problem_.key(), way.config, *way.counters,
                        way.us.estimate);
  }
  answer_interrupt();
  options_.json ? print_json(profile_json(found)) : print_text(profile_text(found));
  const bool all = std::all_of(found.ways.begin(), found.ways.end(),
                               [](const ProfiledWay& way) { return way.trial.ok(); });
  db_->confirm();
  return all ? exit_done : exit_failed;
}

void add_profiled_operation(CLI::App& app, Action& action, const Operation& operation,
                            const std::string& name) {
  auto* sub = app.add_subcommand(name, operation.summary);
  auto options = std::make_shared<ProfileOptions>();
  add_problem_options(*sub, operation, options->problem);
  const std::string which = "What to profile (default: --default and --winner)";
  sub->add_option("--config", options->configs,
                  "A configuration, as reports print it; may be repeated")
      ->allow_extra_args(false)
      ->group(which);
  sub->add_flag("--winner", options->winner, "What a runtime finds for the problem")->group(which);
  sub->add_flag("--default", options->fallback, "The operation's default")->group(which);
  const std::string how = "Measurement";
  sub->add_option("--device", options->device, "auto, an id as vulkan:0, or a part of a name")
      ->capture_default_str()
      ->group(how);
  sub->add_flag("--warm", options->warm, "Don't flush the caches before each sample and pass")
      ->group(how);
  auto* const seconds =
      add_number(*sub, "--seconds", options->seconds, "Seconds of timing in rounds", {0.1, 3600})
          ->type_name("SECONDS")
          ->capture_default_str()
          ->group(how);
  add_whole_number(*sub, "--timeout", options->timeout_s, "Deadline of a launch in seconds", 1,
                   86400)
      ->capture_default_str()
      ->group(how);
  auto* const energy =
      sub->add_flag("--energy", options->energy, "Also measure the energy of a launch")->group(how);
  sub->add_option("--seed", options->seed, "Seed of the inputs")->capture_default_str()->group(how);
  auto* const launch_only =
      sub->add_flag("--launch-only", options->launch_only,
                    "Only flush the caches and launch the kernels once, for another profiler that "
                    "watches this process")
          ->group(how);
  sub->add_flag("--no-lock", options->no_lock,
                "Don't wait for another process that measures on the same card")
      ->group(how);
  sub->add_flag("--allow-unsafe", options->allow_unsafe,
                "Also use devices and features that failed a health check (greta-bench doctor)")
      ->group(how);
  add_allow(*sub, options->allow)->group(how);
  add_kernels_option(*sub);
  add_templates_option(*sub);
  sub->add_option("--db", options->db, "Database of winners, peaks and counters")
      ->group("Output")
      ->capture_default_str();
  add_known_databases(*sub, options->known, "Output");
  auto* const json = sub->add_flag("--json", options->json, "Print one JSON object (docs/json.md)")
                         ->group("Output");
  for (CLI::Option* const of_a_report : {seconds, energy, json}) launch_only->excludes(of_a_report);
  sub->footer(fmt::format("Examples:\n  greta-tune profile {0}\n  greta-tune profile {0} --winner",
                          example_problem(operation, name)));
  sub->callback([&action, &operation, options] {
    action = [&operation, options] { return ProfileRun(operation, *options).run(); };
  });
}

}  // namespace

void add_profile_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand(
      "profile", "Count what configurations do on the hardware, and name what limits them");
  command->require_subcommand(1);
  command->footer("Examples:\n  greta-tune profile gemm --m 4096 --n 4096 --k 4096 --dtype f16");
  if (!description.file.empty()) {
    refuse_names_of_options(description.file, [&] {
      add_profiled_operation(*command, action, add_described(description.file), description.word);
    });
    return;
  }
  for (const Operation& operation : Catalog::built_in()) {
    add_profiled_operation(*command, action, operation, operation.name);
  }
}

}  // namespace greta::tuner::cli
