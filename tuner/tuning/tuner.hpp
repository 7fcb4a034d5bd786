#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/evaluator_pool.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// What a tuner needs to know. A default-constructed one tunes on the best device for a minute, in
/// this process, once `database` and `cache_directory` are set.
struct TunerOptions {
  Catalog catalog = Catalog::built_in();
  /// Ids or parts of names. Cards of one model tune together; several models are compared.
  std::vector<std::string> devices{"auto"};
  std::filesystem::path database;         ///< of trials and winners; made where there is none
  std::filesystem::path shipped;          ///< one below it, whose winners are tried early
  std::filesystem::path cache_directory;  ///< of compiled kernels, and of locks
  /// The command that starts this program as its own worker, in which kernels run, as in
  /// {"/proc/self/exe", "worker"}: that command calls serve_as_worker(). Empty: kernels run in this
  /// process, and a crash or a hang of a driver ends it.
  std::vector<std::string> worker;
  std::string name = "greta::tuner";    ///< of the program, for others that wait for the card
  Budget budget = Budget::seconds(60);  ///< of each problem
  std::string strategy = "local";       ///< of strategies()
  std::optional<std::uint64_t> seed;    ///< of inputs and search; nothing: random
  std::uint64_t flush_bytes = 0;  ///< that flush the caches; 0: by the last-level cache's size
  bool cold = true;               ///< flush the caches before each sample
  bool compare_naive = false;     ///< also time a kernel with one thread per output
  bool reject_spills = false;     ///< candidates that spill registers fail before they run
  bool lock = true;               ///< wait for other processes that measure on the card
  bool allow_unsafe = false;      ///< also use what failed its health check
};

/// A problem, and configurations to try first.
struct TuningTask {
  Problem problem;
  std::vector<Config> try_first{};
  std::string where{};  ///< what lists it, for messages: "smoke.json: problems[1]"
  double share = 1;     ///< of the budget
};

/// What a task gave.
struct TaskResult {
  std::vector<SessionResult> sessions;   ///< one for each device model, in the options' order
  std::optional<ContestResult> contest;  ///< between entrants(), where there are several

  /// Whether every device has a winner.
  bool won() const;
  /// The sessions that have a winner.
  std::vector<const SessionResult*> entrants() const;
  /// Why the database does not have all of this; empty where it has.
  std::string not_stored() const;
};

/// Tunes problems on one device or several: searches, verifies, certifies, and records every step
/// in a database.
///
/// All input is checked before anything is opened or written. What is wrong with an option is a
/// Failure on its field: "device", "strategy", "db", "shipped" or "try"; `unavailable` means that
/// there is no device to use, and `interrupted` that `stop` was set.
class Tuner {
 public:
  /// Checks the options and all tasks, waits for the cards, and opens the database and the
  /// devices. `observer` and `stop` must outlive the tuner.
  static Result<std::unique_ptr<Tuner>> open(const TunerOptions& options,
                                             const std::vector<TuningTask>& tasks,
                                             TunerObserver& observer,
                                             const std::atomic<bool>& stop);

  /// Tunes a task on each device model in turn, then compares the winners. What ends a session
  /// early is in its result; other trouble is a Failure, after which the tuner is of no more use.
  Result<TaskResult> tune(const TuningTask& task);

  const TunedDb& database() const { return db_; }

 private:
  Tuner(TunerOptions options, TunerObserver& observer, const std::atomic<bool>& stop,
        std::vector<CardLock> locks, TunedDb db);
  Result<void> open_evaluators(const std::vector<ProbedDevice>& devices);
  void make_pools();
  SessionOptions session_options() const;
  TaskResult tune_on_each(const TuningTask& task);
  std::vector<Config> suggestions(const Problem& problem, const DeviceInfo& device) const;
  void compare(TaskResult& result, const SessionOptions& options);

  TunerOptions options_;
  TunerObserver& observer_;
  const std::atomic<bool>& stop_;
  std::uint64_t seed_ = 0;
  std::string date_;
  std::vector<CardLock> locks_;
  TunedDb db_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // one for each card
  std::vector<std::unique_ptr<EvaluatorPool>> pools_;   // one for each device model
};

/// Opens a database. A failure is on the field "db".
Result<TunedDb> open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// Whether a database that must be there can be read; a failure is on `field`.
Result<void> check_database(const std::string& field, const std::filesystem::path& file);

}  // namespace greta::tuner
