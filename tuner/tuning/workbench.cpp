#include "tuner/tuning/workbench.hpp"

#include <algorithm>
#include <utility>

#include "tuner/evaluate/worker_evaluator.hpp"
#include "tuner/tuning/device_selection.hpp"

namespace greta::tuner {

Workbench::Workbench(WorkbenchOptions options, TunerObserver& observer,
                     const std::atomic<bool>& stop)
    : options_(std::move(options)), observer_(observer), stop_(stop), present_(present_devices()) {
  options_.evaluator.stop = &stop_;
  std::erase_if(present_, [](const ProbedDevice& device) { return !device.usable; });
}

std::vector<DeviceInfo> Workbench::devices() const {
  std::vector<DeviceInfo> infos;
  for (const auto& device : present_) infos.push_back(device.info);
  return infos;
}

Result<Evaluator*> Workbench::evaluator(const std::string& fingerprint) {
  if (open_ == fingerprint) return evaluator_.get();
  const auto found = std::find_if(present_.begin(), present_.end(), [&](const auto& device) {
    return device.info.fingerprint() == fingerprint;
  });
  if (found == present_.end()) return static_cast<Evaluator*>(nullptr);
  evaluator_.reset();
  locks_.clear();
  if (options_.lock) {
    auto locked = lock_cards({*found}, options_.evaluator.cache_directory / "locks", options_.name,
                             observer_, stop_);
    if (!locked) return locked.failure();
    locks_ = *std::move(locked);
  }
  options_.evaluator.device = found->info.id();
  evaluator_ = std::make_unique<WorkerEvaluator>(options_.worker, options_.evaluator);
  open_ = fingerprint;
  return evaluator_.get();
}

}  // namespace greta::tuner
