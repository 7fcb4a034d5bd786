#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// Options for opening devices.
struct WorkbenchOptions {
  EvaluatorOptions evaluator;       ///< the device is set later
  std::vector<std::string> worker;  ///< as TunerOptions::worker; not empty
  std::string name;                 ///< program name, shown to processes that wait for the card
  bool lock = true;                 ///< wait for other processes that measure on the card
};

/// Gives access to the devices of this machine that the results of a database belong to. One device
/// is open at a time, with its card locked.
class Workbench {
 public:
  /// `observer` and `stop` must outlive the workbench.
  Workbench(WorkbenchOptions options, TunerObserver& observer, const std::atomic<bool>& stop);

  std::vector<DeviceInfo> devices() const;
  /// Returns the evaluator of a device, or nullptr if no usable device of this machine has the
  /// fingerprint. Fails with `interrupted` if stopped while waiting for a card.
  Result<Evaluator*> evaluator(const std::string& fingerprint);

 private:
  WorkbenchOptions options_;
  TunerObserver& observer_;
  const std::atomic<bool>& stop_;
  std::vector<ProbedDevice> present_;
  std::string open_;  // fingerprint of the open device
  std::vector<CardLock> locks_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace greta::tuner
