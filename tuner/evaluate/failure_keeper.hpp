#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "kernels/launch/prepared_plan.hpp"
#include "kernels/model/adversarial.hpp"
#include "kernels/model/operation.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/backend.hpp"

namespace greta::tuner {

/// A candidate that failed its check.
struct FailedCheck {
  Candidate choice;  ///< problem and configuration that were evaluated
  Problem on;        ///< the problem whose results are wrong: the same, or a small one
  LaunchPlan plan;   ///< the candidate's plan for it
  InputSeed seed;
  InputStyle style = InputStyle::plain;  ///< of the inputs with which it failed
  std::string message;
};

/// Keeps candidates that fail as cases (docs/diagnose.md). Each is run again on new operands, and
/// several times, so that the case tells what differs between runs.
class FailureKeeper {
 public:
  /// Usual time limit of the runs of a case, after the first one.
  static constexpr std::chrono::seconds usual_time{20};

  /// Cases are folders in `folder`. Without a folder nothing is kept. `compiler` is how the
  /// binaries are compiled that the cases contain. Runs for which `most_time` is too short are left
  /// out of a case.
  FailureKeeper(std::filesystem::path folder, OpenOptions compiler,
                std::chrono::nanoseconds most_time = usual_time)
      : folder_(std::move(folder)), compiler_(std::move(compiler)), most_time_(most_time) {}

  /// Returns the longest time in seconds that keeping takes beside compiling again: the runs, and a
  /// run on plain inputs and the first one, which both may last until the deadline of a run.
  static double longest_s(double run_s) { return usual_time.count() + 2 * run_s; }

  /// Whether another failure would be kept.
  bool wants_more() const { return !folder_.empty() && kept_ < most_kept; }
  /// Keeps a failure. Warns where that is not possible, and why. `candidate` has the kernels of the
  /// failure's plan. `device_info` is what plans were made for.
  void keep(Device& device, const DeviceInfo& device_info, Stream& stream,
            const Operation& operation, const FailedCheck& failed, const PreparedPlan& candidate,
            double run_s);

 private:
  static constexpr int most_kept = 8;

  Result<void> try_to_keep(Device& device, const DeviceInfo& device_info, Stream& stream,
                           const Operation& operation, FailedCheck failed,
                           const PreparedPlan& candidate, double run_s);

  std::filesystem::path folder_;
  OpenOptions compiler_;
  std::chrono::nanoseconds most_time_;
  int kept_ = 0;
};

}  // namespace greta::tuner
