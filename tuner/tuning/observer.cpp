#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

void TunerObserver::on_wait(const std::string& /*holder*/, const std::string& /*card*/) {}

void TunerObserver::on_unsafe(const DeviceInfo& /*device*/, const UnsafePart& /*part*/,
                              const DeviceInfo* /*instead*/) {}

void TunerObserver::on_damage(const TunedDb& /*db*/) {}
void TunerObserver::on_unreadable(const std::string& /*line*/) {}

void TunerObserver::on_resume(const UnfinishedRun& /*run*/) {}

void TunerObserver::on_session(const Problem& /*problem*/, const DeviceInfo& /*device*/,
                               std::size_t /*devices*/) {}

void TunerObserver::on_not_stored(const std::string& /*why*/) {}

}  // namespace greta::tuner
