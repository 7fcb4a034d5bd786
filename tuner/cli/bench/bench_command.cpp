#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/device/system/utc.hpp"
#include "runtime/device/telemetry.hpp"
#include "tuner/bench/peer_benchmarks.hpp"
#include "tuner/cli/bench/bench_json.hpp"
#include "tuner/cli/bench/bench_output.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/doctor.hpp"
#include "tuner/cli/bench/entries.hpp"
#include "tuner/cli/bench/gates.hpp"
#include "tuner/cli/bench/google_run.hpp"
#include "tuner/cli/bench/one_problem.hpp"
#include "tuner/cli/bench/options.hpp"
#include "tuner/cli/bench/table.hpp"
#include "tuner/cli/bench/verify_run.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/damage_report.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/report_page.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::chrono::seconds check_deadline{120};  // per health check

/// One run of greta-bench.
class Bench {
 public:
  explicit Bench(const BenchOptions& options);
  int run();

 private:
  void check_parts() const;
  DeviceBench::Options device_options();
  Processes processes() const;
  void expect(const std::vector<const GoogleRun::Entry*>& entries);
  void add_entries();
  void leave_out_known();
  void prepare_google();
  std::size_t measure_groups(std::vector<NamedResult>& rows);
  int measure();
  std::vector<NamedResult> measure_group(std::vector<GoogleRun::Entry> entries);
  int verify();
  std::vector<NamedResult> finished() const;
  void count(std::vector<NamedResult>& rows);
  void write_trace() const;
  void show(const std::vector<NamedResult>& rows, const std::vector<GateResult>& gates) const;
  int conclude(const std::vector<NamedResult>& rows, const std::vector<GateResult>& gates) const;

  BenchOptions options_;
  Preset preset_;
  std::optional<Gates> gates_;
  std::vector<NamedResult> known_rows_;  // of earlier calls, with --resume
  LookupFiles known_;                    // without the user's
  std::vector<ProbedDevice> selected_;
  std::uint64_t seed_ = 0;
  double timeout_s_ = 0;
  int failed_checks_ = 0;
  std::optional<Trace> trace_;
  std::string date_ = utc_now();
  BenchOutput output_{options_, preset_, date_};
  std::vector<CardLock> locks_;
  std::vector<std::unique_ptr<DeviceBench>> devices_;
  GoogleRun google_;
  bool lists_ = false;      // prints names and measures nothing
  bool own_output_ = true;  // GRETA's output, not Google Benchmark's
  Stopwatch watch_;
};

Bench::Bench(const BenchOptions& options)
    : options_(options), preset_(preset_of(options)), seed_(read_seed(options.seed)) {
  constexpr std::uint64_t most = 10'000;
  if (!options.repeat.empty()) {
    preset_.repeat = static_cast<int>(read_count("--repeat", options.repeat, most));
  }
  timeout_s_ = static_cast<double>(read_count("--timeout", options.timeout, most));
  if (options.untuned && options.both) {
    throw CommandError(exit_usage,
                       "--untuned: omits the winners, which --both compares with the defaults");
  }
  if (options.warm && !options.flush.empty()) {
    throw CommandError(exit_usage, "--flush: not with --warm, which does not flush caches");
  }
  if (options.counters && !preset_.measure) {
    throw CommandError(exit_usage, "--counters: this preset times nothing");
  }
  if (options.resume || options.limit_s > 0) check_parts();
  static_cast<void>(matches(options.filter, {}));  // reports an invalid expression
  lists_ = given(options.google_flags, "--benchmark_list_tests");
  gates_.emplace(preset_, !options.warm);
  if (options.json && given(options.google_flags, "--benchmark_format")) {
    throw CommandError(exit_usage, "--json: not with --benchmark_format");
  }
  known_ = known_files(options.known);
  if (options.compute_only) {
    preset_.platform.clear();
    preset_.runtime.clear();
  }
  if (!options.trace.empty()) {
    if (!preset_.measure) throw CommandError(exit_usage, "--trace: this preset times nothing");
    if (options.processes != "auto") {
      throw CommandError(exit_usage, "--processes: not with --trace, which covers one process");
    }
    trace_.emplace();
    write_trace();  // reports an error before anything is measured
  }
  selected_ = select_safe_devices(options.device, options.db, options.allow_unsafe);
  if (options.each_backend) add_backends(selected_);
  read_flush(options.flush);
  if (!options.report.empty()) {
    if (!options.exporting)
      throw CommandError(exit_usage, "--report: needs --export, whose file it shows");
    check_report("--report", options.report, {options.db, options.export_file});
  }
  if (options_.exporting) {
    if (options_.export_file.empty()) return;  // the folder in results/ is created
    check_csv("--export", options_.export_file);
  }
}

void Bench::check_parts() const {
  const char* option = options_.resume ? "--resume" : "--limit";
  const auto refuse = [&](std::string_view why) {
    throw CommandError(exit_usage, fmt::format("{}: {}", option, why));
  };
  if (options_.export_file.empty()) refuse("needs --export FILE, which contains the measurements");
  if (!preset_.measure) refuse("this preset times nothing");
  if (options_.limit_s > 0 && !options_.google_flags.empty()) {
    refuse("does not go with Google Benchmark's own flags");
  }
}

Processes Bench::processes() const {
  if (trace_) return Processes::none;  // a trace only covers this process
  if (options_.processes == "all") return Processes::all;
  // A process takes blocks of one size, which differs if Google Benchmark chooses it.
  const bool one_size = !given(options_.google_flags, "--benchmark_min_time");
  return options_.processes == "auto" && one_size ? Processes::automatic : Processes::calls;
}

DeviceBench::Options Bench::device_options() {
  DeviceBench::Options options;
  options.winners = !options_.untuned;
  options.databases = known_;
  options.databases.own = options_.db;
  options.defaults = options_.both;
  options.allow_unsafe = options_.allow_unsafe;
  options.ceilings = preset_.measure && !lists_;
  options.kernels.cold = !options_.warm;
  options.kernels.timeout_s = timeout_s_;
  options.kernels.flush_bytes = read_flush(options_.flush);
  options.kernels.seed = seed_;
  options.kernels.trace = options_.trace.empty() ? nullptr : &*trace_;
  options.processes = processes();
  options.vendor = names_vendor(preset_);
  return options;
}

void Bench::add_entries() {
  if (options_.problem) check_configs(*options_.problem, devices_);
  const std::string filter =
      options_.filter.empty() ? filter_of(options_.google_flags) : options_.filter;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const auto prefix = devices_.size() > 1 ? devices_[i]->info().id() + "/" : "";
    for (auto& benchmark : devices_[i]->benchmarks(preset_)) {
      google_.entries.push_back({prefix + benchmark.name(), std::move(benchmark), {}, i});
    }
    for (const auto& note : devices_[i]->notes()) tell(note);
    gates_->add(*devices_[i], prefix, filter);
  }
}

int Bench::run() {
  catch_interrupts();
  check_results_database(options_.db);
  if (!options_.no_lock && !lists_)
    locks_ = lock_cards(cards_of(selected_, preset_.platform), "greta-bench");
  TunedDb db = open_database(options_.db, TunedDb::Mode::read_write);
  for (const auto& device : selected_) {
    if (!preset_.checks.empty() && !lists_) {
      failed_checks_ += failures_of(run_doctor(device, db, preset_.checks, check_deadline, stderr));
      if (stop_requested()) throw CommandError(exit_failed, "interrupted");
    }
    const EndsAtOnce opens;
    devices_.push_back(std::make_unique<DeviceBench>(device, db, device_options()));
  }
  add_entries();
  static_cast<void>(tell_damage(db));
  int code = exit_done;
  try {
    code = preset_.measure ? measure() : verify();
  } catch (...) {
    tell_unless_stored(db);
    throw;
  }
  db.confirm();
  if (!options_.report.empty() && !lists_) output_.write_page(devices_);
  return code;
}

// Removes benchmarks that the exported file already contains for the same device and software.
void Bench::leave_out_known() {
  if (!options_.resume || !std::filesystem::exists(options_.export_file)) return;
  const auto known = read_csv(options_.export_file);
  if (!known) throw CommandError(exit_usage, "--export " + known.failure().message);
  known_rows_ = leave_out(*known, google_.entries);
  const auto count = known_rows_.size();
  if (count > 0)
    tell(fmt::format("{} in {} already", format_count(count, "row"), options_.export_file));
}

void Bench::prepare_google() {
  google_.iterations = preset_.iterations;
  google_.batch = preset_.batch;
  google_.runs = preset_.repeat;
  google_.flags = options_.google_flags;
  google_.settle_s = options_.settle_s;
  google_.stop = &stop_requested();
  google_.announce = [this](const auto& entries) { expect(entries); };
  if (google_.entries.empty()) {
    throw CommandError(exit_failed, "no benchmark of the preset runs on this device");
  }
  const bool parts = options_.resume || options_.limit_s > 0;
  if (!parts) {
    google_.filter = options_.filter;
    return;
  }
  std::erase_if(google_.entries,
                [&](const auto& entry) { return !matches(options_.filter, entry.name); });
  if (google_.entries.empty()) {
    throw CommandError(exit_usage,
                       fmt::format("--filter {}: matches no benchmark", options_.filter));
  }
  leave_out_known();
}

// Measures and exports one group after the other. Returns the number of benchmarks that are left.
std::size_t Bench::measure_groups(std::vector<NamedResult>& rows) {
  constexpr std::size_t group_size = 12;
  std::size_t left = google_.entries.size();
  auto groups =
      in_groups(std::exchange(google_.entries, {}), options_.limit_s > 0 ? group_size : left + 1);
  double longest_s = 0;
  for (auto& group : groups) {
    const double begun = watch_.seconds();
    // The first one always runs, so that every call makes progress.
    if (longest_s > 0 && options_.limit_s > 0 && begun + longest_s > options_.limit_s) break;
    left -= group.size();
    auto measured = measure_group(std::move(group));
    if (options_.exporting && !measured.empty()) output_.write(measured, devices_);
    std::move(measured.begin(), measured.end(), std::back_inserter(rows));
    longest_s = std::max(longest_s, watch_.seconds() - begun);
    if (stop_requested()) break;
  }
  return left;
}

int Bench::measure() {
  keep_results_after_interrupt();
  prepare_google();
  telemetry::set_sink(trace_ ? &*trace_ : nullptr);
  std::vector<NamedResult> rows;
  const std::size_t left = measure_groups(rows);
  telemetry::set_sink(nullptr);
  write_trace();
  std::vector<NamedResult> judged = known_rows_;
  judged.insert(judged.end(), rows.begin(), rows.end());
  const bool complete = left == 0 && !stop_requested() && !lists_;
  const auto gates = gates_->judge(judged, complete);
  if (own_output_) show(rows, gates);
  const int code = conclude(rows, left == 0 ? gates : std::vector<GateResult>());
  if (left == 0) return code;
  throw CommandError(exit_failed,
                     fmt::format("{} remaining after {:.0f} s; --resume continues with them",
                                 format_count(left, "benchmark"), watch_.seconds()));
}

std::vector<NamedResult> Bench::measure_group(std::vector<GoogleRun::Entry> entries) {
  google_.entries = std::move(entries);
  google_.interleave = true;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::uint64_t bytes = 0;
    for (const auto& entry : google_.entries) {
      if (entry.device == i) bytes += entry.benchmark.device_bytes;
    }
    // Operands that don't fit together would be created anew for each block.
    if (bytes > devices_[i]->info().memory_bytes / 2) google_.interleave = false;
  }
  own_output_ = google_.run();
  auto rows = finished();
  add_speedups(rows);
  if (options_.counters) count(rows);
  const std::size_t own = rows.size();
  rows.insert(rows.end(), known_rows_.begin(), known_rows_.end());
  gates_->annotate(rows);
  rows.resize(own);
  return rows;
}

void Bench::show(const std::vector<NamedResult>& rows, const std::vector<GateResult>& gates) const {
  std::vector<const MeasuredResult*> results;
  for (const NamedResult& row : rows) results.push_back(&row.result);
  const auto parts = devices_.empty() ? std::vector<PartsResult>{}
                                      : compare_parts(devices_.front()->checker().catalog(),
                                                      preset_.problems, results);
  if (options_.json) {
    print_json(bench_json(preset_.name, rows, gates, parts));
    return;
  }
  const auto table = !preset_.measure ? verify_table : options_.problem ? ways_table : bench_table;
  const bool beside = options_.problem && options_.problem->parts;
  std::vector<NamedResult> ways;  // a table of ways is of one problem
  for (const NamedResult& row : rows) {
    if (!beside || row.result.subject.problem == options_.problem->problem) ways.push_back(row);
  }
  if (!ways.empty() && !(beside && ways.size() == 1 && !parts.empty())) print_text(table(ways));
  if (!parts.empty()) {
    print_text((beside && ways.size() == 1 ? "" : "\n") + parts_table(parts));
  }
  if (const auto ladder = ladder_table(rows); !ladder.empty()) print_text("\n" + ladder);
  if (!gates.empty()) print_text((rows.empty() ? "" : "\n") + gate_table(gates));
}

void Bench::expect(const std::vector<const GoogleRun::Entry*>& entries) {
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    std::vector<const Benchmark*> own;
    for (const auto* entry : entries) {
      if (entry->device == i) own.push_back(&entry->benchmark);
    }
    devices_[i]->expect(own);
  }
}

void Bench::write_trace() const {
  if (!trace_) return;
  const auto written = trace_->write(options_.trace);
  if (!written) throw CommandError(exit_usage, "--trace " + written.failure().message);
}

int Bench::verify() {
  VerifyRun checks;
  checks.filter = options_.filter;
  checks.runs = preset_.repeat;
  checks.seed = seed_;
  checks.random = preset_.random;
  checks.timeout_s = timeout_s_;
  std::vector<NamedResult> rows;
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    for (auto& entry : google_.entries) {
      if (entry.device != i) continue;
      checks.check(entry.name, entry.benchmark, rows, stop_requested());
    }
    checks.check_random(devices_[i]->checker(), rows, stop_requested());
  }
  for (auto& row : rows) row.result.date = date_;
  gates_->annotate(rows);
  const auto results = gates_->judge(rows, !stop_requested());
  show(rows, results);
  if (options_.exporting && !rows.empty()) output_.write(rows, devices_);
  return conclude(rows, results);
}

// Counts after all times of the group were taken. Nothing is timed meanwhile.
void Bench::count(std::vector<NamedResult>& rows) {
  for (std::size_t i = 0; i < devices_.size() && !stop_requested(); ++i) {
    std::vector<MeasuredResult*> kernels;
    std::size_t at = 0;
    for (const auto& entry : google_.entries) {
      if (entry.blocks == 0 && !entry.result.failure) continue;  // as in finished()
      MeasuredResult& result = rows[at++].result;
      if (entry.device == i && entry.benchmark.kind == Benchmark::Kind::kernel &&
          result.subject.config && !result.failure) {
        kernels.push_back(&result);
      }
    }
    devices_[i]->count(kernels);
  }
}

std::vector<NamedResult> Bench::finished() const {
  std::vector<NamedResult> rows;
  for (const auto& entry : google_.entries) {
    if (entry.blocks == 0 && !entry.result.failure) continue;  // excluded by the filter
    rows.push_back({entry.name, finished_result(entry.benchmark, entry.result)});
    rows.back().result.date = date_;
    rows.back().result.clocks =
        read_conditions(devices_[entry.device]->info().card.pci_address).clocks;
  }
  return rows;
}

int Bench::conclude(const std::vector<NamedResult>& rows,
                    const std::vector<GateResult>& gates) const {
  const auto failed = static_cast<std::size_t>(std::count_if(
      rows.begin(), rows.end(), [](const auto& row) { return row.result.failure.has_value(); }));
  if (stop_requested()) throw CommandError(exit_failed, "interrupted");
  if (failed > 0) {
    throw CommandError(exit_failed, fmt::format("{} of {} failed", failed, rows.size()));
  }
  if (failed_checks_ > 0) {
    throw CommandError(
        exit_failed, fmt::format("{} failed", format_count(static_cast<std::size_t>(failed_checks_),
                                                           "health check")));
  }
  conclude_gates(gates);
  if (preset_.repeat > 1 && !lists_) tell(fmt::format("{0} of {0} runs passed", preset_.repeat));
  return exit_done;
}

}  // namespace

void add_bench_options(CLI::App& app, Action& action, std::vector<std::string> google_flags) {
  auto options = std::make_shared<BenchOptions>();
  options->db = default_database();
  options->google_flags = std::move(google_flags);
  add_options(app, *options);
  const auto* exporting = app.get_option("--export");
  action = [options, exporting] { return run_bench(*options, exporting->count() > 0); };
}

int run_bench(BenchOptions options, bool exporting) {
  options.exporting = exporting;
  // The option parser stores this if no value is given.
  if (options.export_file == "true") options.export_file.clear();
  return Bench(options).run();
}

}  // namespace greta::tuner::cli
