#include "tuner/cli/options/tuning_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <iterator>
#include <optional>

#include "runtime/device/system/utc.hpp"
#include "tuner/cli/options/device_options.hpp"
#include "tuner/cli/options/kept_cases.hpp"
#include "tuner/cli/options/option_values.hpp"
#include "tuner/cli/program/databases.hpp"
#include "tuner/cli/program/interrupt.hpp"
#include "tuner/cli/program/known_operations.hpp"
#include "tuner/cli/program/next.hpp"
#include "tuner/cli/program/paths.hpp"
#include "tuner/cli/program/report_page.hpp"
#include "tuner/cli/program/revision.hpp"
#include "tuner/cli/program/terminal.hpp"
#include "tuner/cli/program/validate.hpp"
#include "tuner/report/csv.hpp"
#include "tuner/report/csv_wide.hpp"
#include "tuner/report/format.hpp"
#include "tuner/report/json_lines.hpp"
#include "tuner/report/plot.hpp"
#include "tuner/report/print.hpp"
#include "tuner/report/report.hpp"
#include "tuner/report/terminal_size.hpp"

namespace greta::tuner::cli {

void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget,
                        const std::vector<std::string>& allowed) {
  options.budget = budget;
  options.db = default_database();
  const std::string group = "Tuning";
  command
      .add_option(
          "--device,--devices", options.device,
          "auto, all (every GPU once), hip:all, an id as vulkan:0, a PCI address or UUID, or "
          "a part of a name; a list as hip:0,hip:1. Equal cards share the problems; others, "
          "as in hip:0,vulkan:0, are compared")
      ->group(group)
      ->capture_default_str();
  add_validate_option(command, options.device);
  command
      .add_option(
          "--strategy", options.strategy,
          names_of_strategies() + "; with options as NAME:key=value,key=value (docs/search.md)")
      ->group(group)
      ->capture_default_str();
  command
      .add_option("--budget", options.budget,
                  "Time (60s, 10m), trials (500) or share of the space (5%)")
      ->group(group)
      ->capture_default_str();
  command.add_option("--seed", options.seed, "Seed of inputs and search; random by default")
      ->group(group);
  command.add_flag("--warm", options.warm, "Don't flush the caches before each sample")
      ->group(group);
  command
      .add_option("--flush", options.flush,
                  "Memory in MiB that flushes the caches before each sample; default: by the "
                  "last-level cache's size")
      ->group(group);
  add_whole_number(command, "--rounds", options.rounds,
                   "Most rounds in which finalists and default are timed; four times as many "
                   "while a gain is not proven",
                   3, 1000)
      ->group(group)
      ->capture_default_str();
  command.add_flag("--naive", options.naive, "Also time a kernel with one thread per output")
      ->group(group);
  command
      .add_flag("--in-process", options.in_process,
                "Run kernels in this process, not in a worker; a crash ends the run")
      ->group(group);
  command
      .add_flag("--reject-spills", options.reject_spills,
                "Reject candidates with registers in scratch memory before they run")
      ->group(group);
  command
      .add_flag("--retry-failed", options.retry_failed,
                "Also try candidates that hung or crashed before with this driver")
      ->group(group);
  add_choice(
      command, "--objective", options.objective,
      "time; or energy: also find the configuration of which a launch takes the fewest joules",
      {"time", "energy"})
      ->group(group);
  command
      .add_flag("--no-resume", options.no_resume,
                "Start afresh, also if the same command was interrupted before it finished")
      ->group(group);
  command
      .add_flag("--pin", options.pin,
                "Pin the answer: it never changes until greta-db unpin releases it")
      ->group(group);
  command
      .add_flag("--no-lock", options.no_lock,
                "Don't wait for another greta-tune that measures on the same card")
      ->group(group);
  command
      .add_flag("--allow-unsafe", options.allow_unsafe,
                "Also use devices and features that failed a health check (greta-bench doctor)")
      ->group(group);
  add_allow(command, options.allow, allowed)->group(allowed.empty() ? "" : group);
  add_kernels_option(command);
  add_templates_option(command);
  command.add_option("--db", options.db, "Database of trials and winners")
      ->group("Output")
      ->capture_default_str();
  add_known_databases(command, options.known, "Output");
  command
      .add_flag("--quiet", options.quiet, "Show no progress; the report and warnings are printed")
      ->group("Output");
  command.add_flag("--verbose", options.verbose, "Show each trial on a line")->group("Output");
  command.add_flag("--json", options.json, "Print one JSON object (docs/json.md)")->group("Output");
  command
      .add_flag("--json-lines", options.json_lines,
                "Print each trial at once, as a JSON object on a line (docs/json.md)")
      ->group("Output");
  command.add_option("--csv", options.csv, "Append rows to a CSV file (docs/csv.md)")
      ->group("Output");
  command
      .add_option("--csv-wide", options.csv_wide,
                  "Write rows to a CSV file with a column for each dimension and parameter")
      ->group("Output");
  add_keep_failed(command, options.keep_failed)->group("Output");
  command
      .add_option("--report", options.report,
                  "Write a page that shows the database, as greta-report does (docs/report.md)")
      ->group("Output");
}

Verbosity verbosity(const TuningOptions& options) {
  if (options.quiet && options.verbose)
    throw CommandError(exit_usage, "--quiet: not with --verbose");
  if (options.quiet) return Verbosity::quiet;
  return options.verbose ? Verbosity::verbose : Verbosity::normal;
}

TunerOptions tuner_options(const TuningOptions& options) {
  TunerOptions tuner;
  tuner.catalog = operations_in_use();
  tuner.budget = read_budget(options.budget);
  if (!options.seed.empty()) tuner.seed = read_seed(options.seed);
  tuner.flush_bytes = read_flush(options.flush);
  if (options.warm && !options.flush.empty()) {
    throw CommandError(exit_usage, "--flush: not with --warm, which does not flush caches");
  }
  tuner.devices = names_of_devices(options.device);
  check_new_database(options.db);
  tuner.database = options.db;
  LookupFiles known = known_files(options.known);
  tuner.application = std::move(known.application);
  tuner.shipped = std::move(known.shipped);
  tuner.cache_directory = default_cache_directory();
  if (!options.in_process) tuner.worker = worker_command();
  tuner.name = "greta-tune";
  tuner.strategy = options.strategy;
  tuner.cold = !options.warm;
  tuner.rounds = options.rounds;
  tuner.compare_naive = options.naive;
  tuner.reject_spills = options.reject_spills;
  tuner.lock = !options.no_lock;
  tuner.resume = !options.no_resume;
  tuner.pin = options.pin;
  tuner.retry_failed = options.retry_failed;
  tuner.for_energy = options.objective == "energy";
  tuner.allow_unsafe = options.allow_unsafe;
  tuner.allow_vendor = allows(options.allow, "vendor");
  return tuner;
}

ResultFiles::ResultFiles(const TuningOptions& options) : options_(options), date_(utc_now()) {
  check_csv("--csv", options.csv);
  if (!options.report.empty())
    check_report("--report", options.report, {options.db, options.csv, options.csv_wide});
  if (options.csv_wide.empty()) return;
  check_folder("--csv-wide", options.csv_wide);
  if (std::filesystem::exists(options.csv_wide)) {
    throw CommandError(exit_usage, fmt::format("--csv-wide {}: exists; it would be replaced",
                                               options.csv_wide.string()));
  }
}

void ResultFiles::add(const TaskResult& result) {
  const auto refuse = [&](const std::string& message) {
    throw CommandError(exit_failed,
                       fmt::format("{}; the trials are in {}", message, options_.db.string()));
  };
  for (const auto& session : result.sessions) {
    auto rows = measured_results(session, !options_.warm, date_);
    for (auto& row : rows) row.subject.greta_revision = revision();
    if (!options_.csv.empty()) {
      if (const auto written = append_csv(options_.csv, rows); !written)
        refuse("--csv " + written.failure().message);
    }
    std::move(rows.begin(), rows.end(), std::back_inserter(rows_));
  }
  if (options_.csv_wide.empty()) return;
  std::ofstream file(options_.csv_wide, std::ios::binary);
  if (!(file << csv_wide(rows_)).flush())
    refuse(fmt::format("--csv-wide {}: can't be written", options_.csv_wide.string()));
}

void ResultFiles::write_page() const {
  if (options_.report.empty()) return;
  write_report({.databases = {options_.db}}, options_.report);
  if (!options_.for_programs())
    print_text(format_row("report", options_.report.string() + ", for a browser"));
}

namespace {

/// Tunes tasks and passes each result to `show`. Returns whether each task has a winner.
bool tune_all_tasks(Tuner& tuner, const std::vector<TuningTask>& tasks, ResultFiles& files,
                    const std::function<void(const TuningTask&, const TaskResult&)>& show) {
  bool all = true;
  std::size_t ended = 0;
  value_of(tuner.tune_all(tasks, [&](const TuningTask& task, const TaskResult& result) {
    answer_interrupt();
    ++ended;
    all = all && result.won();
    if (!result.given_up.empty()) tell(task.problem.key() + ": " + result.given_up);
    show(task, result);
    files.add(result);
    std::fflush(stdout);
    if (const auto why = result.not_stored(); !why.empty()) throw CommandError(exit_failed, why);
  }));
  return all && ended == tasks.size() && !stop_requested();
}

}  // namespace

std::string plots_of(const TaskResult& result) {
  const std::size_t columns = terminal_size(stdout).columns;
  if (!isatty(STDOUT_FILENO) || columns == 0 || !utf8_locale()) return {};
  std::string text;
  for (const auto& session : result.sessions) {
    text += plot_text(session.trials, session.problem.key(), std::min<std::size_t>(columns, 80));
    if (session.winner && session.winner->roofline > 0)
      text += format_row("roofline", bar_text(session.winner->roofline, 40) + " " +
                                         format_share(session.winner->roofline));
  }
  return text;
}

bool tune_tasks(const std::vector<TuningTask>& tasks, const TuningOptions& options,
                const std::function<void(const TuningTask&, const TaskResult&)>& show) {
  if (options.json && options.json_lines)
    throw CommandError(exit_usage, "--json-lines: not with --json");
  TunerOptions tuner_is = tuner_options(options);
  const bool described = std::any_of(tasks.begin(), tasks.end(), [](const TuningTask& task) {
    return is_described(task.problem.op);
  });
  tuner_is.keep_failed = folder_of_failures(options.keep_failed, described);
  KeptCases kept(tuner_is.keep_failed);
  ResultFiles files(options);
  catch_interrupts();
  Terminal terminal(verbosity(options));
  std::vector<TunerObserver*> observers{&terminal};
  std::optional<JsonLines> lines;
  std::optional<AlsoWarn> warnings;
  if (options.json_lines) {
    std::signal(SIGPIPE, SIG_IGN);  // the tune goes on without its readers
    observers.push_back(&lines.emplace(stdout));
    warnings.emplace([&](const std::string& line) { lines->warn(line); });
  }
  SerialObserver observer(std::move(observers));
  bool all = false;
  try {
    const auto tuner = value_of(Tuner::open(tuner_is, tasks, observer, stop_requested()));
    all = tune_all_tasks(*tuner, tasks, files, show);
    kept.tell();
    if (!stop_requested() && !options.for_programs() && !options.quiet) {
      std::vector<Problem> done;
      for (const auto& task : tasks) done.push_back(task.problem);
      print_text(next_text(tuner->database(), done));
    }
  } catch (const std::exception& error) {
    if (lines) lines->end(false, stop_requested(), error.what());
    throw;
  }
  if (lines) lines->end(all, stop_requested(), "");
  files.write_page();
  if (lines && lines->failed()) throw CommandError(exit_failed, "can't write the output");
  return all;
}

}  // namespace greta::tuner::cli
