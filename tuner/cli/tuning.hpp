#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/problem.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/session/session.hpp"

namespace greta {

/// The options that every tuning command has.
struct TuningOptions {
  std::string device = "auto";
  std::string strategy = "local";
  std::string budget;
  std::filesystem::path db;
  std::filesystem::path csv;
  std::string seed;   ///< empty: random
  std::string flush;  ///< MiB overwritten for a cold sample; empty: by the device's table
  bool warm = false;
  bool naive = false;
  bool json = false;
  bool in_process = false;
};

/// Adds them to a subcommand.
void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget);

/// A problem, and configurations (as text) to try first.
struct TuningTask {
  Problem problem;
  std::vector<std::string> try_first;
};

/// Everything a tuning command needs. All input is checked before anything is opened or written.
class Tuning {
 public:
  /// Throws CommandError for what the user can mend, a problem that does not fit the device's or
  /// the host's memory among it.
  Tuning(const TuningOptions& options, const std::vector<TuningTask>& tasks);

  SessionResult run(const TuningTask& task);
  /// Appends to the CSV file, if one was asked for.
  void write_csv(const SessionResult& result);

  const std::filesystem::path& database() const { return db_->file(); }
  bool interrupted() const;

 private:
  TuningOptions options_;
  Budget budget_;
  std::uint64_t seed_ = 0;
  std::string date_;
  std::unique_ptr<Evaluator> evaluator_;
  std::optional<TunedDb> db_;
};

/// Ends a command whose --device could not be had: exit code 3 where there is no device at all, 2
/// where the wanted one is not among those there are.
[[noreturn]] void no_such_device(const std::string& wanted, const Failure& failure);

/// Opens a database for a command; throws CommandError that names the option.
TunedDb open_database(const std::filesystem::path& file, TunedDb::Mode mode);

}  // namespace greta
