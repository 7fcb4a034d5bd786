#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "db/lookup/lookup_files.hpp"
#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/evaluator_pool.hpp"
#include "tuner/session/contest.hpp"
#include "tuner/session/session.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// Options of a tuner. With the defaults it tunes on the best device for a minute, in this process.
/// `database` and `cache_directory` must be set.
struct TunerOptions {
  Catalog catalog = Catalog::built_in();
  /// Ids or parts of names. Cards of one model tune together; different models are compared.
  std::vector<std::string> devices{"auto"};
  std::filesystem::path database;  ///< trials and winners; created if missing
  /// Read-only databases whose winners are tried early: an application's, and a folder of those
  /// that GRETA ships (see LookupFiles).
  std::vector<std::filesystem::path> application;
  std::filesystem::path shipped = shipped_folder();
  std::filesystem::path cache_directory;  ///< compiled kernels and locks
  /// Command that starts this program as a worker, in which kernels run, e.g. {"/proc/self/exe",
  /// "worker"}. It must call serve_as_worker(). If empty, kernels run in this process, and a crash
  /// or hang of a driver ends it.
  std::vector<std::string> worker;
  std::string name = "greta::tuner";    ///< program name, shown to processes that wait for the card
  Budget budget = Budget::seconds(60);  ///< per problem
  std::string strategy = "local";       ///< for parse_strategy()
  std::optional<std::uint64_t> seed;    ///< seed of inputs and search; empty: random
  std::uint64_t flush_bytes = 0;        ///< size of the cache flush; 0: from the last-level cache
  bool cold = true;                     ///< flush the caches before each sample
  bool compare_naive = false;           ///< also time a kernel with one thread per output
  bool reject_spills = false;           ///< candidates that spill registers fail before they run
  bool resume = true;                   ///< go on with an unfinished run of the same request
  bool pin = false;                     ///< pin the answers (TunedDb::pin())
  bool lock = true;                     ///< wait for other processes that measure on the card
  bool allow_unsafe = false;            ///< also use what failed its health check
};

/// A problem and the configurations to try first.
struct TuningTask {
  Problem problem;
  std::vector<Config> try_first{};
  SearchLimits limits{};
  std::string where{};  ///< where it is listed, for messages: "smoke.json: problems[1]"
  double share = 1;     ///< fraction of the budget, 0…1
};

/// The result of a task.
struct TaskResult {
  std::vector<SessionResult> sessions;   ///< one per device model, in the order of the options
  std::optional<ContestResult> contest;  ///< between entrants(), if there are several

  /// Returns whether every device has a winner.
  bool won() const;
  /// Returns the sessions that have a winner.
  std::vector<const SessionResult*> entrants() const;
  /// Returns why the database lacks part of this; empty if it is complete.
  std::string not_stored() const;
};

/// Tunes problems on one or several devices: searches, verifies, certifies, and records every step
/// in a database.
///
/// All input is checked before anything is opened or written. An invalid option is a Failure on its
/// field: "device", "strategy", "db", "shipped", "try", "variant", "fix" or "range". `unavailable`
/// means that no device can be used, `interrupted` that `stop` was set.
class Tuner {
 public:
  /// Checks the options and all tasks, waits for the cards, and opens the database and the devices.
  /// `observer` and `stop` must outlive the tuner.
  static Result<std::unique_ptr<Tuner>> open(const TunerOptions& options,
                                             const std::vector<TuningTask>& tasks,
                                             TunerObserver& observer,
                                             const std::atomic<bool>& stop);

  /// Tunes a task on each device model in turn, then compares the winners. An early end of a
  /// session is noted in its result. Any other error is a Failure, after which the tuner must not
  /// be used.
  Result<TaskResult> tune(const TuningTask& task);

  const TunedDb& database() const { return db_; }

 private:
  Tuner(TunerOptions options, TunerObserver& observer, const std::atomic<bool>& stop,
        std::vector<CardLock> locks, TunedDb db);
  /// Goes on with the unfinished run of the same request, or begins one.
  void begin_run(const std::vector<ProbedDevice>& devices, const std::vector<TuningTask>& tasks);
  Result<void> open_evaluators(const std::vector<ProbedDevice>& devices);
  void make_pools();
  SessionOptions session_options() const;
  TaskResult tune_on_each(const TuningTask& task);
  std::vector<Config> suggestions(const Problem& problem, const DeviceInfo& device);
  void compare(TaskResult& result, const SessionOptions& options);

  TunerOptions options_;
  TunerObserver& observer_;
  const std::atomic<bool>& stop_;
  std::uint64_t seed_ = 0;
  std::string date_;
  std::int64_t run_ = 0;        // id in the database
  std::size_t tasks_left_ = 0;  // of the run
  std::vector<CardLock> locks_;
  TunedDb db_;
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // one per card
  std::vector<std::unique_ptr<EvaluatorPool>> pools_;   // one per device model
  std::set<std::string> unreadable_;                    // lines that the observer has received
};

/// Checks the text of TunerOptions::strategy. A failure is on the field "strategy".
Result<void> check_strategy(const std::string& text);
/// Opens a database. A failure is on the field "db".
Result<TunedDb> open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// Checks that a required database can be read. A failure is on `field`.
Result<void> check_database(const std::string& field, const std::filesystem::path& file);

}  // namespace greta::tuner
