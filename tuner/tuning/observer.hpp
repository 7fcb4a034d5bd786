#pragma once

#include <string>

#include "db/tuned_db.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Receives events while a tuner works, on the thread that called it. The default implementations
/// do nothing.
class TunerObserver : public SessionObserver {
 public:
  /// Another process measures on the same card, and the tuner waits for it. `holder` is that
  /// process's description of itself, which may be empty. `card` is CardLock::key().
  virtual void on_wait(const std::string& holder, const std::string& card);
  /// A health check of a device failed (greta-bench doctor), so that a feature is not used. With
  /// `instead`, the whole device is replaced by that one.
  virtual void on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                         const DeviceInfo* instead);
  /// Rows of the database are damaged and are ignored (TunedDb::damaged()).
  virtual void on_damage(const TunedDb& db);
  /// A database below the user's own, or a part of it, can't be read and is ignored
  /// (Lookup::unreadable()). Each line is told once.
  virtual void on_unreadable(const std::string& line);
  /// A run goes on that did not finish.
  virtual void on_resume(const UnfinishedRun& run);
  /// A session begins on one of `devices` device models.
  virtual void on_session(const Problem& problem, const DeviceInfo& device, std::size_t devices);
  /// A failure ends the run, and the database lacks data that should have been stored.
  virtual void on_not_stored(const std::string& why);
};

}  // namespace greta::tuner
