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

/// Times candidates of one problem in interleaved rounds, and keeps them between calls: what is
/// usual for the reference kernel, and how many launches a short kernel needs, is learnt once.
class RoundTimer {
 public:
  explicit RoundTimer(const DeviceInfo& info) : info_(info) {}

  /// Whether it holds the candidates of exactly these configurations.
  bool holds(const std::vector<Config>& configs) const { return configs_ == configs; }
  /// Takes candidates, in the order of their configurations, instead of those it had.
  void set(const std::vector<Config>& configs, std::vector<PreparedPlan> candidates);
  void clear() { set({}, {}); }

  /// As Evaluator::time_rounds. After a failure the device must be opened again.
  Rounds run(LaunchTimer& timer, int rounds, double seconds, std::uint64_t seed,
             const TrialLimits& limits);

 private:
  /// Of one round: a time for each candidate, the reference kernel last.
  using Round = std::vector<double>;
  Result<std::vector<Round>> take(int count, LaunchTimer& timer, std::mt19937_64& random,
                                  const TrialLimits& limits) const;
  bool learn_batches(const Round& round);
  bool drifted(double reference_us);
  double device_us(const Round& round) const;

  const DeviceInfo& info_;
  std::vector<Config> configs_;
  std::vector<PreparedPlan> candidates_;
  std::vector<int> batches_;          // launches averaged in one time; empty until learnt
  std::vector<double> reference_us_;  // of the reference kernel, in all rounds
};

}  // namespace greta::tuner
