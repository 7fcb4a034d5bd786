#include "tuner/cli/measuring.hpp"

#include <algorithm>

#include "tuner/cli/locks.hpp"
#include "tuner/cli/paths.hpp"
#include "tuner/cli/tool.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::tuner::cli {
std::vector<ProbedDevice> present_devices() {
  std::vector<ProbedDevice> all;
  for (Backend* backend : backends()) {
    Probe probe = backend->probe();
    std::move(probe.devices.begin(), probe.devices.end(), std::back_inserter(all));
  }
  return all;
}

Workbench::Workbench(EvaluatorOptions options, std::string tool, bool lock)
    : options_(std::move(options)),
      tool_(std::move(tool)),
      lock_(lock),
      present_(present_devices()) {
  options_.cache_directory = default_cache_directory();
  std::erase_if(present_, [](const ProbedDevice& device) { return !device.usable; });
}

std::vector<DeviceInfo> Workbench::devices() const {
  std::vector<DeviceInfo> infos;
  for (const auto& device : present_) infos.push_back(device.info);
  return infos;
}

Evaluator* Workbench::evaluator(const std::string& fingerprint) {
  if (open_ == fingerprint) return evaluator_.get();
  const auto found = std::find_if(present_.begin(), present_.end(), [&](const auto& device) {
    return device.info.fingerprint() == fingerprint;
  });
  if (found == present_.end()) return nullptr;
  evaluator_.reset();
  locks_.clear();
  if (lock_) locks_ = lock_cards({*found}, tool_);
  options_.device = found->info.id();
  evaluator_ = std::make_unique<WorkerEvaluator>(worker_command(), options_);
  open_ = fingerprint;
  return evaluator_.get();
}

}  // namespace greta::tuner::cli
