#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/compile_slots.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/tuning/lanes.hpp"
#include "tuner/tuning/observer.hpp"
#include "tuner/tuning/tuner_options.hpp"

namespace greta::tuner {

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

  /// Tunes a task on each device model, then compares the winners. An early end of a session is
  /// noted in its result. Any other error is a Failure, after which the tuner must not be used.
  Result<TaskResult> tune(const TuningTask& task);
  /// Tunes tasks as Lanes::run() does, and fails like tune().
  Result<void> tune_all(const std::vector<TuningTask>& tasks, const Lanes::Done& done);

  const TunedDb& database() const { return db_; }

 private:
  Tuner(TunerOptions options, TunerObserver& observer, const std::atomic<bool>& stop,
        std::vector<CardLock> locks, TunedDb db);
  /// Goes on with the unfinished run of the same request, or begins one.
  void begin_run(const std::vector<ProbedDevice>& devices, const std::vector<TuningTask>& tasks);
  bool wants_vendor(const DeviceInfo& device, const std::vector<TuningTask>& tasks) const;
  Result<void> open_evaluators(const std::vector<ProbedDevice>& devices,
                               const std::vector<TuningTask>& tasks);
  std::unique_ptr<Evaluator> open_evaluator(const EvaluatorOptions& options) const;

  TunerOptions options_;
  TunerObserver& observer_;
  const std::atomic<bool>& stop_;
  std::uint64_t seed_ = 0;
  std::string date_;
  std::int64_t run_ = 0;        // id in the database
  std::size_t tasks_left_ = 0;  // of the run
  std::vector<CardLock> locks_;
  TunedDb db_;
  std::optional<CompileSlots> slots_;                   // if there are several cards
  std::vector<std::unique_ptr<Evaluator>> evaluators_;  // one per device
  std::unique_ptr<Lanes> lanes_;
};

/// Checks the text of TunerOptions::strategy. A failure is on the field "strategy".
Result<void> check_strategy(const std::string& text);
/// Opens a database. A failure is on the field "db".
Result<TunedDb> open_database(const std::filesystem::path& file, TunedDb::Mode mode);
/// Checks that results can be added to a database if it exists, without creating it: callers do so
/// before they wait for a card. A failure is on the field "db".
Result<void> check_results(const std::filesystem::path& file);
/// Checks that a required database can be read. A failure is on `field`.
Result<void> check_database(const std::string& field, const std::filesystem::path& file);

}  // namespace greta::tuner
