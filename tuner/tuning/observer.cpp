#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

void TunerObserver::on_wait(const std::string& /*holder*/, const std::string& /*card*/) {}

void TunerObserver::on_unsafe(const DeviceInfo& /*device*/, const UnsafePart& /*part*/,
                              const DeviceInfo* /*instead*/) {}

void TunerObserver::on_damage(const TunedDb& /*db*/, const std::vector<DamagedRow>& /*rows*/) {}
void TunerObserver::on_unreadable(const std::string& /*line*/) {}

void TunerObserver::on_resume(const UnfinishedRun& /*run*/) {}

void TunerObserver::on_run(const RunStart& /*run*/) {}

void TunerObserver::on_session(const SessionStart& /*session*/) {}

void TunerObserver::on_phase(const DeviceInfo& /*device*/, const std::string& /*what*/) {}

void TunerObserver::on_trial(const SessionResult& /*result*/, const Budget& /*budget*/) {}

void TunerObserver::on_session_end(const SessionResult& /*result*/) {}

void TunerObserver::on_card_lost(const std::string& /*why*/) {}

void TunerObserver::on_not_stored(const std::string& /*why*/) {}

void SerialObserver::on_wait(const std::string& holder, const std::string& card) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_wait(holder, card);
}

void SerialObserver::on_unsafe(const DeviceInfo& device, const UnsafePart& part,
                               const DeviceInfo* instead) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_unsafe(device, part, instead);
}

void SerialObserver::on_damage(const TunedDb& db, const std::vector<DamagedRow>& rows) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_damage(db, rows);
}

void SerialObserver::on_unreadable(const std::string& line) {
  const std::lock_guard lock(mutex_);
  if (!unreadable_.insert(line).second) return;
  for (TunerObserver* const observer : observers_) observer->on_unreadable(line);
}

void SerialObserver::on_resume(const UnfinishedRun& run) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_resume(run);
}

void SerialObserver::on_run(const RunStart& run) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_run(run);
}

void SerialObserver::on_session(const SessionStart& session) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_session(session);
}

void SerialObserver::on_phase(const DeviceInfo& device, const std::string& what) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_phase(device, what);
}

void SerialObserver::on_trial(const SessionResult& result, const Budget& budget) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_trial(result, budget);
}

void SerialObserver::on_session_end(const SessionResult& result) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_session_end(result);
}

void SerialObserver::on_card_lost(const std::string& why) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_card_lost(why);
}

void SerialObserver::on_not_stored(const std::string& why) {
  const std::lock_guard lock(mutex_);
  for (TunerObserver* const observer : observers_) observer->on_not_stored(why);
}

}  // namespace greta::tuner
