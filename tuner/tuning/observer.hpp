#pragma once

#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "db/tuned_db.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// A run of a tuner that begins.
struct RunStart {
  std::vector<DeviceInfo> cards;
  std::size_t problems = 0;
  std::size_t models = 1;  ///< number of device models, each of which tunes every problem
};

/// A session that begins.
struct SessionStart {
  Problem problem;
  std::vector<DeviceInfo> cards;  ///< that share its trials; the first one certifies
  std::size_t models = 1;         ///< number of device models that tune this problem
};

/// Receives events while a tuner works. Several sessions may run at the same time, on different
/// devices: then calls come from several threads, but one at a time. The default implementations do
/// nothing.
class TunerObserver {
 public:
  virtual ~TunerObserver() = default;
  /// Another process measures on the same card, and the tuner waits for it. `holder` is that
  /// process's description of itself, which may be empty. `card` is CardLock::key().
  virtual void on_wait(const std::string& holder, const std::string& card);
  /// A health check of a device failed (greta-bench doctor), so that a feature is not used. With
  /// `instead`, the whole device is replaced by that one.
  virtual void on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                         const DeviceInfo* instead);
  /// Rows of the database are damaged and are ignored (TunedDb::damaged_but_trials()).
  virtual void on_damage(const TunedDb& db, const std::vector<DamagedRow>& rows);
  /// A database below the user's own, or a part of it, can't be read and is ignored
  /// (Lookup::unreadable()). Each line is told once.
  virtual void on_unreadable(const std::string& line);
  /// A run goes on that did not finish.
  virtual void on_resume(const UnfinishedRun& run);
  virtual void on_run(const RunStart& run);
  virtual void on_session(const SessionStart& session);
  /// A phase begins of the session whose first card is `device`.
  virtual void on_phase(const DeviceInfo& device, const std::string& what);
  /// Called after each trial, which is the last one in `result`. `result` is incomplete, and its
  /// device is the session's first card.
  virtual void on_trial(const SessionResult& result, const Budget& budget);
  virtual void on_session_end(const SessionResult& result);
  /// A card has left the run: "hip:1: the device does not answer". Its work goes on elsewhere.
  virtual void on_card_lost(const std::string& why);
  /// A failure ends the run, and the database lacks data that should have been stored.
  virtual void on_not_stored(const std::string& why);
};

/// Passes events on to each of several observers, one at a time, and each on_unreadable() once.
class SerialObserver final : public TunerObserver {
 public:
  explicit SerialObserver(std::vector<TunerObserver*> observers)
      : observers_(std::move(observers)) {}
  void on_wait(const std::string& holder, const std::string& card) override;
  void on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                 const DeviceInfo* instead) override;
  void on_damage(const TunedDb& db, const std::vector<DamagedRow>& rows) override;
  void on_unreadable(const std::string& line) override;
  void on_resume(const UnfinishedRun& run) override;
  void on_run(const RunStart& run) override;
  void on_session(const SessionStart& session) override;
  void on_phase(const DeviceInfo& device, const std::string& what) override;
  void on_trial(const SessionResult& result, const Budget& budget) override;
  void on_session_end(const SessionResult& result) override;
  void on_card_lost(const std::string& why) override;
  void on_not_stored(const std::string& why) override;

 private:
  std::vector<TunerObserver*> observers_;
  std::mutex mutex_;
  std::set<std::string> unreadable_;  // lines that were passed on
};

}  // namespace greta::tuner
