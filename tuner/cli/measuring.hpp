#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/evaluate/card_lock.hpp"
#include "tuner/evaluate/local_evaluator.hpp"

namespace greta::tuner::cli {

/// Every device of this machine, usable or not.
std::vector<ProbedDevice> present_devices();

/// The devices of this machine that results of a database are about: one is open at a time, with
/// its card locked.
class Workbench {
 public:
  Workbench(EvaluatorOptions options, std::string tool, bool lock);

  std::vector<DeviceInfo> devices() const;
  /// nullptr where no usable device of this machine has the fingerprint.
  Evaluator* evaluator(const std::string& fingerprint);

 private:
  EvaluatorOptions options_;
  std::string tool_;
  bool lock_;
  std::vector<ProbedDevice> present_;
  std::string open_;  // fingerprint
  std::vector<CardLock> locks_;
  std::unique_ptr<Evaluator> evaluator_;
};

}  // namespace greta::tuner::cli
