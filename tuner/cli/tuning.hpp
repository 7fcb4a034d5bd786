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
  std::optional<std::uint64_t> seed;
  std::string flush;  ///< MiB overwritten for a cold sample; empty: by the device's table
  bool warm = false;
  bool naive = false;
  bool json = false;
  bool in_process = false;
};

/// Adds them to a subcommand.
void add_tuning_options(CLI::App& command, TuningOptions& options, const std::string& budget);

/// Everything a tuning command needs, checked before anything is changed: the device is open, the
/// database and the CSV file can be written.
class Tuning {
 public:
  /// Throws CommandError for what the user can mend.
  explicit Tuning(const TuningOptions& options);

  /// Throws CommandError when the problem does not fit the device's or the host's memory.
  void check_fits(const Problem& problem) const;
  /// `try_first`: configurations as text; throws CommandError for one that is not valid.
  SessionResult run(const Problem& problem, const std::vector<std::string>& try_first = {});
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

}  // namespace greta
