#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>
#include <vector>

#include "tuner/cli/options/database_options.hpp"
#include "tuner/measure/measured_result.hpp"
#include "tuner/report/progress.hpp"
#include "tuner/tuning/tuner.hpp"

namespace greta::tuner::cli {

/// The options of every tuning command, as text.
struct TuningOptions {
  std::string device = "auto";
  std::string strategy = "auto";
  std::string budget;
  std::filesystem::path db;
  KnownDatabases known;  ///< their configurations are among the first candidates
  std::filesystem::path csv;
  std::filesystem::path csv_wide;
  std::filesystem::path report;       ///< the page to write at the end; empty: none
  std::filesystem::path keep_failed;  ///< folder of cases; empty: of described kernels only
  std::string seed;                   ///< empty: random
  std::string flush;  ///< cache flush of cold samples in MiB; empty: chosen for the device
  int rounds = TunerOptions().rounds;
  bool warm = false;
  bool naive = false;
  bool json = false;
  bool json_lines = false;
  bool in_process = false;
  bool reject_spills = false;
  bool no_lock = false;
  bool no_resume = false;
  bool retry_failed = false;
  std::string objective = "time";
  bool pin = false;
  bool allow_unsafe = false;
  std::vector<std::string> allow;  ///< words of --allow
  bool quiet = false;
  bool verbose = false;

  /// Whether standard output is for programs, without reports for readers.
  bool for_programs() const { return json || json_lines; }
};

/// Adds the options to a subcommand. `allowed`: the words of --allow.
void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget,
                        const std::vector<std::string>& allowed = {"vendor"});
/// Returns how much progress is shown. Throws CommandError.
Verbosity verbosity(const TuningOptions& options);
/// Converts the options. Throws CommandError.
TunerOptions tuner_options(const TuningOptions& options);

/// The files of --csv, --csv-wide and --report, if they are requested.
class ResultFiles {
 public:
  /// Checks that the files can be written. Throws CommandError.
  explicit ResultFiles(const TuningOptions& options);
  /// Appends a result to the file of --csv, and writes that of --csv-wide with all results so far.
  void add(const TaskResult& result);
  /// Writes the page of --report, after everything is stored. Throws CommandError.
  void write_page() const;

 private:
  const TuningOptions& options_;
  std::string date_;  ///< when the run began
  std::vector<MeasuredResult> rows_;
};

/// Returns the trials and the share of the roofline of a task as plots; empty unless standard
/// output is a terminal with UTF-8.
std::string plots_of(const TaskResult& result);

/// Tunes tasks in order according to the options, and passes each result to `show`. Handles
/// interrupts, and writes CSV files and the report if requested. Afterwards, unless --json or
/// --quiet is given, prints which problems of the database would gain most by tuning. Returns
/// whether each task has a winner. Throws CommandError, also if the database lacks part of a
/// result.
bool tune_tasks(const std::vector<TuningTask>& tasks, const TuningOptions& options,
                const std::function<void(const TuningTask&, const TaskResult&)>& show);

}  // namespace greta::tuner::cli
