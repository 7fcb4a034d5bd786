#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "kernels/launch/prepared_plan.hpp"
#include "kernels/model/config.hpp"
#include "runtime/device/device_info.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// Times candidates of one problem in interleaved rounds. It keeps them between calls, so that the
/// usual time of the reference kernel and the batch sizes of short kernels are determined once.
class RoundTimer {
 public:
  explicit RoundTimer(const DeviceInfo& info) : info_(info) {}

  /// Returns whether it holds the candidates of exactly these configurations.
  bool holds(const std::vector<Config>& configs) const { return configs_ == configs; }
  /// Replaces its candidates, which are in the order of their configurations.
  void set(const std::vector<Config>& configs, std::vector<PreparedPlan> candidates);
  void clear() { set({}, {}); }

  const PreparedPlan& candidate(std::size_t index) const { return candidates_[index]; }

  /// Implements Evaluator::time_rounds. After a failure the device must be reopened.
  Rounds run(LaunchTimer& timer, int rounds, double seconds, std::uint64_t seed,
             const TrialLimits& limits);

 private:
  /// The times of one round: one per candidate, the reference kernel last.
  using Round = std::vector<double>;
  Result<std::vector<Round>> take(int count, LaunchTimer& timer, std::mt19937_64& random,
                                  const TrialLimits& limits) const;
  bool learn_batches(const Round& round);
  bool drifted(double reference_us);
  double device_us(const Round& round) const;

  const DeviceInfo& info_;
  std::vector<Config> configs_;
  std::vector<PreparedPlan> candidates_;
  std::vector<int> batches_;          // launches averaged in one time; empty: unknown
  std::vector<double> reference_us_;  // times of the reference kernel in all rounds
};

}  // namespace greta::tuner
