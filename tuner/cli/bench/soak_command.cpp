#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <memory>

#include "tuner/bench/soak_kernel.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/entries.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/options/problem_options.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/gemm_logs.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/soak_report.hpp"

namespace greta::tuner::cli {
namespace {

struct SoakOptions {
  std::string duration;
  std::string preset = "smoke";
  std::optional<PresetProblem> problem;  // in place of the preset
  std::vector<std::string> configs;
  ProblemRequest request;
  std::string device = "auto";
  std::filesystem::path db = default_database();
  KnownDatabases known;
  std::string filter, seed;
  std::string timeout = "30";
  double drift_percent = 5, growth_mib = 32;
  std::filesystem::path csv;
  bool untuned = false, json = false, no_lock = false, allow_unsafe = false;
};

double read_duration(const std::string& text) {
  if (text.empty()) {
    throw CommandError(exit_usage, "--for: a time is needed, such as 30s, 10m or 1h");
  }
  const auto budget = Budget::parse(text);
  if (!budget || budget->kind() != Budget::Kind::seconds) {
    throw CommandError(exit_usage,
                       fmt::format("--for {}: must be a time, such as 30s, 10m or 1h", text));
  }
  return budget->amount();
}

/// Reads the sensors of a card not more often than they change.
class RecentSensor {
 public:
  explicit RecentSensor(const std::string& pci_address)
      : sensor_(pci_address.empty() ? nullptr : card_sensor(pci_address)) {}
  const CardReading& read() {
    constexpr double oldest_s = 0.5;
    if (sensor_ != nullptr && (!known_ || watch_.seconds() - read_s_ > oldest_s)) {
      reading_ = sensor_->read();
      read_s_ = watch_.seconds();
      known_ = true;
    }
    return reading_;
  }

 private:
  CardSensor* sensor_;
  Stopwatch watch_;
  double read_s_ = 0;
  bool known_ = false;
  CardReading reading_;
};

/// One soak of the kernels of a preset, or of one problem, on one device.
class Soak {
 public:
  explicit Soak(const SoakOptions& options);
  int run();

 private:
  void open();
  void add(const Benchmark& benchmark);
  void fails(const Failure& failure);
  void turn(std::size_t at, const std::function<Result<void>(SoakTurn&)>& run);
  void write(const SoakTurn& turn);
  void show_progress();
  void soak();
  int conclude();

  SoakOptions options_;
  double planned_s_;
  std::uint64_t seed_;
  double timeout_s_;
  Preset preset_;
  LookupFiles known_;
  std::vector<ProbedDevice> selected_;
  std::optional<TunedDb> db_;
  std::unique_ptr<DeviceBench> bench_;
  std::vector<std::unique_ptr<SoakKernel>> kernels_;  // null: it can't run
  std::vector<SoakResult> results_;
  std::vector<SoakTurn> turns_;
  std::optional<RecentSensor> sensor_;
  std::ofstream out_;
  std::optional<Stopwatch> watch_;  // of the soak itself
  int tenth_ = 0;
};

Soak::Soak(const SoakOptions& options)
    : options_(options),
      planned_s_(read_duration(options.duration)),
      seed_(read_seed(options.seed)) {
  constexpr std::uint64_t most_s = 10'000;
  timeout_s_ = static_cast<double>(read_count("--timeout", options.timeout, most_s));
  static_cast<void>(matches(options.filter, {}));  // reports an invalid expression
  if (options.problem) {
    preset_.name = options.problem->problem.op;
    preset_.problems.push_back(*options.problem);
  } else {
    preset_ = load_preset(options.preset);
  }
  preset_.platform.clear();
  preset_.runtime.clear();
  known_ = known_files(options.known);
  if (!options.csv.empty()) check_new_file("--export", options.csv);
  selected_ = select_safe_devices(options.device, options.db, options.allow_unsafe);
  if (selected_.size() > 1) {
    throw CommandError(exit_usage,
                       fmt::format("--device {}: a soak runs on one device", options.device));
  }
}

void Soak::open() {
  db_.emplace(open_database(options_.db, TunedDb::Mode::read_write));
  DeviceBench::Options options;
  options.winners = !options_.untuned;
  options.databases = known_;
  options.databases.own = options_.db;
  options.allow_unsafe = options_.allow_unsafe;
  options.ceilings = false;
  options.processes = Processes::none;
  options.vendor = names_vendor(preset_);
  options.kernels.seed = seed_;
  options.kernels.timeout_s = timeout_s_;
  const EndsAtOnce opens;
  bench_ = std::make_unique<DeviceBench>(selected_.front(), *db_, options);
}

// A kernel that would run alone, but for which the others leave no memory, is skipped.
void Soak::fails(const Failure& failure) {
  SoakResult& result = results_.back();
  result.failure = failure;
  const bool beside = std::any_of(kernels_.begin(), kernels_.end(),
                                  [](const auto& kernel) { return kernel != nullptr; });
  if (!beside || failure.status != Status::out_of_memory) return;
  result.skipped = true;
  tell(fmt::format("{}: skipped: it does not fit beside the others: {}", result.benchmark,
                   failure.message));
}

// Checks a kernel in a process of its own first, which it may crash. All kernels keep their
// operands and expected outputs until the soak ends.
void Soak::add(const Benchmark& benchmark) {
  SoakResult& result = results_.emplace_back(SoakResult{.benchmark = benchmark.name()});
  kernels_.emplace_back();
  // Where memory is promised that does not exist, as on a CPU, an allocation too many ends the
  // process.
  const std::uint64_t held = bench_->device().memory().reserved_bytes;
  if (held + benchmark.device_bytes > bench_->info().memory_bytes) {
    return fails({Status::out_of_memory,
                  fmt::format("{} of operands, and {} of {} are in use",
                              format_bytes(static_cast<double>(benchmark.device_bytes)),
                              format_bytes(static_cast<double>(held)),
                              format_bytes(static_cast<double>(bench_->info().memory_bytes))),
                  {}});
  }
  const Trial trial = benchmark.check(0);
  if (!trial.ok()) {
    fails({*trial.failure, trial.message, trial.log});
    return;
  }
  const Subject& subject = benchmark.subject;
  const Operation& operation = bench_->checker().catalog().at(subject.problem.op);
  auto kernel = SoakKernel::create(bench_->device(), bench_->info(), operation, subject.problem,
                                   *subject.config, {.seed = seed_, .timeout_s = timeout_s_});
  if (!kernel) {
    fails(kernel.failure());
    return;
  }
  result.unordered = (*kernel)->is_unordered();
  kernels_.back() = *std::move(kernel);
}

void Soak::write(const SoakTurn& turn) {
  if (!out_.is_open()) return;
  out_ << soak_csv_line(turn, results_[turn.kernel].benchmark) << std::flush;
  if (!out_)
    throw CommandError(exit_failed, "--export " + options_.csv.string() + ": can't be written");
}

void Soak::turn(std::size_t at, const std::function<Result<void>(SoakTurn&)>& run) {
  SoakTurn turn{.kernel = at};
  const double before = resident_bytes();
  const auto ran = run(turn);
  turn.host_bytes = resident_bytes();
  turn.host_growth = turn.host_bytes - before;
  turn.device_bytes = static_cast<double>(bench_->device().memory().reserved_bytes);
  turn.at_s = watch_->seconds();
  turn.card = sensor_->read();
  if (turn.wrong > 0 && std::none_of(turns_.begin(), turns_.end(), [&](const SoakTurn& other) {
        return other.kernel == at && other.wrong > 0;
      })) {
    tell(fmt::format("{}: the first wrong results after {}, {} of {}", results_[at].benchmark,
                     format_duration(turn.at_s), turn.wrong, turn.launches));
  }
  turns_.push_back(turn);
  write(turn);
  if (ran) return;
  results_[at].failure = ran.failure();
  kernels_[at].reset();
  // A device that was lost, or still runs what hung, is of no use to the others either.
  const Status status = ran.failure().status;
  if (status != Status::timeout && status != Status::device_lost) return;
  for (std::size_t i = 0; i < kernels_.size(); ++i) {
    if (kernels_[i])
      results_[i].failure = Failure{status, "ended with " + results_[at].benchmark, {}};
    kernels_[i].reset();
  }
}

void Soak::show_progress() {
  const double seconds = watch_->seconds();
  if (isatty(STDERR_FILENO) != 0) {
    std::uint64_t launches = 0;
    for (const SoakTurn& turn : turns_) launches += turn.launches;
    const auto& state = turns_.back().card.state;
    show_below(stderr, {fmt::format("{} of {}: {} launches checked{}{}", format_duration(seconds),
                                    format_duration(planned_s_), launches,
                                    state.celsius ? fmt::format(", {:.0f} °C", *state.celsius) : "",
                                    state.watts ? fmt::format(", {:.0f} W", *state.watts) : "")});
    return;
  }
  const int tenth = std::min(10, static_cast<int>(10 * seconds / planned_s_));
  if (tenth > tenth_) print(stderr, "{} % of {}\n", 10 * tenth, format_duration(planned_s_));
  tenth_ = tenth;
}

// The kernels take turns, about a hundred each, which last up to two seconds in soaks of hours.
void Soak::soak() {
  const auto count = static_cast<double>(std::count_if(
      kernels_.begin(), kernels_.end(), [](const auto& kernel) { return kernel != nullptr; }));
  const double turn_s =
      std::clamp(planned_s_ / (100 * std::max(1.0, count)), 0.05, std::max(2.0, planned_s_ / 2000));
  turns_.reserve(static_cast<std::size_t>(planned_s_ / turn_s) + 1024);
  watch_.emplace();
  for (bool any = true; any && !stop_requested() && watch_->seconds() < planned_s_;) {
    any = false;
    for (std::size_t i = 0; i < kernels_.size() && !stop_requested(); ++i) {
      if (!kernels_[i]) continue;
      any = true;
      turn(i, [&](SoakTurn& taken) { return kernels_[i]->run(turn_s, stop_requested(), taken); });
      show_progress();
    }
  }
  for (std::size_t i = 0; i < kernels_.size() && !stop_requested(); ++i) {
    if (kernels_[i]) turn(i, [&](SoakTurn& taken) { return kernels_[i]->check_once(taken); });
  }
  show_below(stderr, {});
}

int Soak::conclude() {
  const SoakLimits limits{.drift = options_.drift_percent / 100,
                          .growth_bytes = options_.growth_mib * (1 << 20)};
  const SoakSummary summary = judge_soak(std::move(results_), turns_, limits);
  const DeviceInfo& info = bench_->info();
  const bool interrupted = stop_requested();
  if (options_.json) {
    print_json(soak_json(summary, info.id() + " " + info.name, planned_s_, interrupted));
  } else {
    print_text(soak_text(summary));
  }
  switch (summary.verdict) {
    case SoakVerdict::fails:
    case SoakVerdict::wrong_results:
      throw CommandError(exit_failed, std::string(to_string(summary.verdict)));
    case SoakVerdict::drifts:
    case SoakVerdict::memory_grows:
      throw CommandError(exit_regression, std::string(to_string(summary.verdict)));
    case SoakVerdict::skipped:
    case SoakVerdict::stable:
      break;
  }
  if (!interrupted) return exit_done;
  throw CommandError(exit_failed,
                     fmt::format("interrupted after {} of {}", format_duration(summary.seconds),
                                 format_duration(planned_s_)));
}

int Soak::run() {
  catch_interrupts();
  check_results_database(options_.db);
  std::vector<CardLock> locks;
  if (!options_.no_lock) locks = lock_cards(selected_, "greta-bench");
  open();
  const auto benchmarks = bench_->benchmarks(preset_);
  for (const std::string& note : bench_->notes()) tell(note);
  for (const Benchmark& benchmark : benchmarks) {
    if (stop_requested()) throw CommandError(exit_failed, "interrupted");
    if (matches(options_.filter, benchmark.name())) add(benchmark);
  }
  if (results_.empty()) {
    throw CommandError(exit_usage,
                       options_.filter.empty()
                           ? "no kernel of the preset runs on this device"
                           : fmt::format("--filter {}: matches no kernel", options_.filter));
  }
  if (!options_.csv.empty()) {
    out_.open(options_.csv);
    out_ << soak_csv_header() << std::flush;
  }
  sensor_.emplace(bench_->info().card.pci_address);
  keep_results_after_interrupt();
  soak();
  answer_interrupt();
  return conclude();
}

void add_soak_options(CLI::App& command, SoakOptions& options) {
  command.add_option("--for", options.duration, "Duration: 30s, 10m, 1h; needed")
      ->type_name("TIME");
  command.add_option("--device", options.device, "auto, an id as vulkan:0, or a part of a name")
      ->capture_default_str();
  add_validate_option(command, options.device);
  command.add_option("--db", options.db, "Database whose winners run")->capture_default_str();
  add_known_databases(command, options.known);
  command.add_flag("--untuned", options.untuned, "Run default configurations, not winners");
  add_number(command, "--drift", options.drift_percent,
             "Change of a kernel's time that counts, in percent", {.least = 0, .exclusive = true})
      ->type_name("PERCENT")
      ->capture_default_str();
  add_number(command, "--growth", options.growth_mib, "Growth of memory that counts, in MiB",
             {.least = 0})
      ->type_name("MIB")
      ->capture_default_str();
  command.add_option("--timeout", options.timeout, "Timeout of one launch in seconds")
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of the inputs; random by default");
  add_kernels_option(command);
  command
      .add_option("--export", options.csv,
                  "Write what was seen over time to a new CSV file (docs/csv.md)")
      ->type_name("FILE");
  command.add_flag("--json", options.json, "Print one JSON object (docs/json.md)");
  command.add_flag("--allow-unsafe", options.allow_unsafe,
                   "Also use devices and features that failed a health check (greta-bench doctor)");
  command.add_flag("--no-lock", options.no_lock,
                   "Don't wait for another tool that measures on the same card");
}

int soak_problem(const Operation& operation, SoakOptions options) {
  auto problem = make_problem(operation, options.request);
  if (!problem) throw bad_option(problem.failure());
  options.problem = PresetProblem{*std::move(problem), "the command line", options.configs};
  return Soak(options).run();
}

void add_soaked_operation(CLI::App& app, Action& action, const Operation& operation,
                          const std::string& name) {
  auto* command = app.add_subcommand(name, operation.summary);
  auto options = std::make_shared<SoakOptions>();
  add_problem_options(*command, operation, options->request);
  command
      ->add_option("--config", options->configs,
                   "A configuration, as reports print it; may be repeated. Without it: what a "
                   "look-up returns")
      ->allow_extra_args(false);
  add_soak_options(*command, *options);
  command->footer(
      fmt::format("Example:\n  greta-bench soak {} --for 10m", example_problem(operation, name)));
  command->callback([&action, &operation, options] {
    action = [&operation, options] { return soak_problem(operation, *options); };
  });
}

}  // namespace

void add_soak_command(CLI::App& app, Action& action, const DescribedFile& description) {
  auto* command = app.add_subcommand(
      "soak", "Run the same work for long, check every result, and watch times, card and memory");
  auto options = std::make_shared<SoakOptions>();
  command->add_option("--preset", options->preset, "A preset's name or file, of which kernels run")
      ->capture_default_str();
  command->add_option("--filter", options->filter,
                      "Only kernels whose names match this expression");
  add_soak_options(*command, *options);
  if (!description.file.empty()) {
    refuse_names_of_options(description.file, [&] {
      add_soaked_operation(*command, action, add_described(description.file), description.word);
    });
  }
  for (const Operation& operation : Catalog::built_in())
    add_soaked_operation(*command, action, operation, operation.name);
  command->footer(
      "Examples:\n  greta-bench soak --preset perf --for 1h --export soak.csv\n"
      "  greta-bench soak gemm --m 4096 --n 4096 --k 4096 --dtype f16 --for 10m");
  command->require_subcommand(0, 1);
  command->callback([&action, command, options] {
    const auto chosen = command->get_subcommands();
    if (chosen.empty()) {
      action = [options] { return Soak(*options).run(); };
      return;
    }
    // The operation has set the action. It has its own options, and would ignore these.
    for (const auto* option : command->get_options()) {
      if (option->count() == 0) continue;
      action = [name = option->get_name(), operation = chosen.front()->get_name()]() -> int {
        throw CommandError(exit_usage,
                           fmt::format("{}: belongs after the operation {}", name, operation));
      };
    }
  });
}

}  // namespace greta::tuner::cli
