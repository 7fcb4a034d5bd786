#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/tuning/observer.hpp"

namespace greta::tuner {

/// How a workbench opens a device.
struct WorkbenchOptions {
  EvaluatorOptions evaluator;       ///< its device is chosen later
  std::vector<std::string> worker;  ///< as TunerOptions::worker; not empty
  std::string name;                 ///< of the program, for others that wait for the card
  bool lock = true;                 ///< wait for other processes that measure on the card
};

/// The devices of this machine that results of a database are about: one is open at a time, with
/// its card locked.
class Workbench {
 public:
  /// `observer` and `stop` must outlive it.
  Workbench(WorkbenchOptions options, TunerObserver& observer, const std::atomic<bool>& stop);

  std::vector<DeviceInfo> devices() const;
  /// The evaluator of a device, or nullptr where no usable device of this machine has the
  /// fingerprint. Fails with `interrupted` while it waits for a card.
  Result<Evaluator*> evaluator(const std::string& fingerprint);

 private:
  WorkbenchOptions options_;
  TunerObserver& observer_;
  const std::atomic<bool>& stop_;
  std::vector<ProbedDevice> present_;
  std::string open_;  // fingerprint
  std::vector<CardLock> locks_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace greta::tuner
