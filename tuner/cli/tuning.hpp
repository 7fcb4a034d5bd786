#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/problem.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner::cli {

/// The options that every tuning command has.
struct TuningOptions {
  Catalog catalog = Catalog::built_in();
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

/// A problem, and configurations (as text) to try first.
struct TuningTask {
  Problem problem;
  std::vector<std::string> try_first;
  std::string where;  ///< what lists it, for messages: "smoke.json: problems[1]"
  double share = 1;   ///< of the budget, which it has for itself
};

/// What a task gave.
struct TaskResult {
  std::vector<SessionResult> sessions;   ///< one for each device, in the order of --device
  std::optional<ContestResult> contest;  ///< between entrants(), where there are several

  /// Whether every device has a winner.
  bool won() const;
  /// The sessions that have a winner.
  std::vector<const SessionResult*> entrants() const;
  /// Throws CommandError where the database does not have all of this.
  void check_stored() const;
};

/// Everything a tuning command needs. All input is checked before anything is opened or written.
class Tuning {
 public:
  /// Throws CommandError for what the user can mend, a problem that does not fit a device's or the
  /// host's memory among it. Waits while another process measures on one of the cards.
  Tuning(const TuningOptions& options, const std::vector<TuningTask>& tasks);

  /// Tunes on each device in turn, then says which is faster.
  TaskResult run(const TuningTask& task);
  /// Appends to the CSV file, if one was asked for.
  void write_csv(const TaskResult& result);

  const std::filesystem::path& database() const { return db_->file(); }
  bool interrupted() const;

 private:
  SessionOptions session_options() const;
  TaskResult tune_on_each(const TuningTask& task);
  std::vector<Config> suggestions(const Problem& problem, const DeviceInfo& device) const;
  void compare(TaskResult& result, const SessionOptions& options);

  TuningOptions options_;
  Budget budget_;
  std::uint64_t seed_ = 0;
  std::string date_;
  std::vector<CardLock> locks_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // one for each device
  std::optional<TunedDb> db_;
};

/// Opens a database for a command; throws CommandError that names the option.
TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// The database that `option` names, which must be there and be readable. Throws CommandError.
std::filesystem::path named_database(const char* option, const std::string& file);
/// Refuses what --shipped names, unless it is nothing or such a database.
void check_shipped(const std::string& file);

}  // namespace greta::tuner::cli
