#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <string>

#include "tuner/tuning/tuner.hpp"

namespace greta::tuner::cli {

/// The options that every tuning command has, as text.
struct TuningOptions {
  std::string device = "auto";
  std::string strategy = "local";
  std::string budget;
  std::filesystem::path db;
  std::string shipped;  ///< a database below it; empty: none
  std::filesystem::path csv;
  std::string seed;   ///< empty: random
  std::string flush;  ///< MiB that flush the caches for a cold sample; empty: by the device's table
  bool warm = false;
  bool naive = false;
  bool json = false;
  bool in_process = false;
  bool reject_spills = false;
  bool no_lock = false;
  bool allow_unsafe = false;
};

/// Adds them to a subcommand.
void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget);
/// What they mean. Throws CommandError.
TunerOptions tuner_options(const TuningOptions& options);

/// Tunes tasks in their order, as options say; `show` gets what each gave. Catches interrupts, and
/// appends to the CSV file, if one was asked for. Returns whether each has a winner. Throws
/// CommandError, also where the database does not have all of a result.
bool tune_tasks(const std::vector<TuningTask>& tasks, const TuningOptions& options,
                const std::function<void(const TuningTask&, const TaskResult&)>& show);

}  // namespace greta::tuner::cli
