#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "runtime/device/system/utc.hpp"
#include "runtime/device/telemetry.hpp"
#include "tuner/bench/compare.hpp"
#include "tuner/cli/bench/commands.hpp"
#include "tuner/cli/bench/device_bench.hpp"
#include "tuner/cli/bench/doctor.hpp"
#include "tuner/cli/bench/entries.hpp"
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
#include "tuner/cli/program/revision.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/stopwatch.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/print.hpp"

namespace greta::tuner::cli {
namespace {

constexpr std::chrono::seconds check_deadline{120};  // per health check
constexpr double confidence = 0.95;                  // used by --both

// Returns the folder of a card in results/: "nvidia-h200"; "lavapipe" for a CPU device.
std::string folder_name(const DeviceInfo& device) {
  std::string name;
  for (const char c : device.is_cpu() ? device.architecture : device.name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) {
      name += static_cast<char>(std::tolower(byte));
    } else if (!name.empty() && name.back() != '-') {
      name += '-';
    }
  }
  return name.substr(0, name.find_last_not_of('-') + 1);
}

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
  std::filesystem::path export_file(const DeviceInfo& device) const;
  void add_entries();
  void leave_out_known();
  int measure();
  std::vector<NamedResult> measure_group(std::vector<GoogleRun::Entry> entries);
  int verify();
  std::vector<NamedResult> finished() const;
  void add_speedups(std::vector<NamedResult>& rows) const;
  void write(const std::vector<NamedResult>& rows) const;
  void write_trace() const;
  void write_page() const;
  int conclude(const std::vector<NamedResult>& rows) const;

  BenchOptions options_;
  Preset preset_;
  LookupFiles known_;  // without the user's
  std::vector<ProbedDevice> selected_;
  std::uint64_t seed_ = 0;
  double timeout_s_ = 0;
  int failed_checks_ = 0;
  std::optional<Trace> trace_;
  std::string date_ = utc_now();
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
  if (options.resume || options.limit_s > 0) check_parts();
  static_cast<void>(matches(options.filter, {}));  // reports an invalid expression
  lists_ = given(options.google_flags, "--benchmark_list_tests");
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

std::filesystem::path Bench::export_file(const DeviceInfo& device) const {
  if (!options_.export_file.empty()) return options_.export_file;
  std::string date = date_;
  date.erase(std::remove(date.begin(), date.end(), ':'), date.end());
  return std::filesystem::path("results") / folder_name(device) /
         fmt::format("{}_{}.csv", date, preset_.name);
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
  return options;
}

void Bench::add_entries() {
  if (options_.problem) check_configs(*options_.problem, devices_);
  for (std::size_t i = 0; i < devices_.size(); ++i) {
    const DeviceInfo& info = devices_[i]->info();
    for (auto& benchmark : devices_[i]->benchmarks(preset_)) {
      const auto prefix = devices_.size() > 1 ? info.id() + "/" : "";
      google_.entries.push_back({prefix + benchmark.name(), std::move(benchmark), {}, i});
    }
    for (const auto& note : devices_[i]->notes()) tell(note);
  }
}

int Bench::run() {
  catch_interrupts();
  if (!options_.no_lock && !lists_) locks_ = lock_cards(selected_, "greta-bench");
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
  if (!options_.report.empty() && !lists_) write_page();
  return code;
}

// Removes benchmarks that the exported file already contains for the same device and software.
void Bench::leave_out_known() {
  if (!options_.resume || !std::filesystem::exists(options_.export_file)) return;
  const auto known = read_csv(options_.export_file);
  if (!known) throw CommandError(exit_usage, "--export " + known.failure().message);
  const auto count = leave_out(*known, google_.entries);
  if (count > 0)
    tell(fmt::format("{} in {} already", format_count(count, "row"), options_.export_file));
}

int Bench::measure() {
  keep_results_after_interrupt();
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
  if (parts) {
    std::erase_if(google_.entries,
                  [&](const auto& entry) { return !matches(options_.filter, entry.name); });
    if (google_.entries.empty()) {
      throw CommandError(exit_usage,
                         fmt::format("--filter {}: matches no benchmark", options_.filter));
    }
    leave_out_known();
    if (google_.entries.empty()) return conclude({});
  } else {
    google_.filter = options_.filter;
  }
  constexpr std::size_t group_size = 12;
  std::size_t left = google_.entries.size();
  auto groups =
      in_groups(std::exchange(google_.entries, {}), options_.limit_s > 0 ? group_size : left + 1);
  telemetry::set_sink(trace_ ? &*trace_ : nullptr);
  std::vector<NamedResult> rows;
  double longest_s = 0;
  for (auto& group : groups) {
    const double begun = watch_.seconds();
    // The first one always runs, so that every call makes progress.
    if (longest_s > 0 && options_.limit_s > 0 && begun + longest_s > options_.limit_s) break;
    left -= group.size();
    auto measured = measure_group(std::move(group));
    if (options_.exporting && !measured.empty()) write(measured);
    std::move(measured.begin(), measured.end(), std::back_inserter(rows));
    longest_s = std::max(longest_s, watch_.seconds() - begun);
    if (stop_requested()) break;
  }
  telemetry::set_sink(nullptr);
  write_trace();
  if (own_output_) print_text(options_.problem ? ways_table(rows) : bench_table(rows));
  const int code = conclude(rows);
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
  return rows;
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
  print_text(verify_table(rows));
  if (options_.exporting && !rows.empty()) write(rows);
  return conclude(rows);
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

// Winner and default of a problem are adjacent.
void Bench::add_speedups(std::vector<NamedResult>& rows) const {
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    MeasuredResult& winner = rows[i].result;
    const MeasuredResult& fallback = rows[i + 1].result;
    const bool pair = winner.subject.from_database() &&
                      fallback.subject.origin == ResultOrigin::untuned && winner.us.median > 0 &&
                      fallback.us.median > 0;
    if (!pair) continue;
    winner.speedup = change_of(winner, fallback, confidence);
    if (!std::isfinite(winner.speedup.high)) winner.speedup.high = 0;  // unknown
  }
}

void Bench::write(const std::vector<NamedResult>& rows) const {
  for (const auto& device : devices_) {
    std::vector<MeasuredResult> own;
    for (const auto& [name, result] : rows) {
      const Subject& subject = result.subject;
      if (subject.backend == to_string(device->info().backend) &&
          subject.device == device->info().name) {
        own.push_back(result);
        own.back().preset = preset_.name;
      }
    }
    const auto file = export_file(device->info());
    if (const auto written = export_csv(file, own); !written) {
      throw CommandError(exit_failed, "--export " + written.failure().message);
    }
    tell(fmt::format("{} in {}", format_count(own.size(), "row"), file.string()));
  }
}

// Writes the report of the database and of the exported files.
void Bench::write_page() const {
  ReportFiles files{.databases = {options_.db}};
  for (const auto& device : devices_) {
    const auto file = export_file(device->info());
    const bool listed =
        std::find(files.baselines.begin(), files.baselines.end(), file) != files.baselines.end();
    if (!listed && std::filesystem::exists(file)) files.baselines.push_back(file);
  }
  write_report(files, options_.report);
  tell("report: " + options_.report.string());
}

int Bench::conclude(const std::vector<NamedResult>& rows) const {
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
