#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tuner/evaluate/evaluator.hpp"
#include "tuner/replay/replay.hpp"

namespace greta::tuner {

/// Evaluates from a recording instead of a device, for sessions and pools. Interleaved rounds
/// repeat the recorded time.
class ReplayEvaluator : public Evaluator {
 public:
  explicit ReplayEvaluator(Recording recording);

  /// Returns the only problem that it evaluates: of an operation "recorded" without dimensions,
  /// whose space is the recording's.
  const Problem& problem() const { return problem_; }
  const Recording& recording() const { return *recording_; }

  const DeviceInfo& device() const override { return device_; }
  const Catalog& catalog() const override { return catalog_; }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override;
  int lookahead() const override { return 1; }
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override;
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override;
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override;
  void renew() override {}
  /// Returns an empty list: a recording has no ceilings.
  std::vector<Ceiling> measure_ceilings(const std::vector<std::string>& /*kinds*/) override {
    return {};
  }

 private:
  std::shared_ptr<const Recording> recording_;
  Catalog catalog_;
  Problem problem_;
  DeviceInfo device_;
};

}  // namespace greta::tuner
