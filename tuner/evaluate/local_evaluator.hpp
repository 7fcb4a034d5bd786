#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/compile_ahead.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/round_timer.hpp"
#include "tuner/evaluate/workload.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// What an evaluator needs to know to open its device and draw its inputs.
struct EvaluatorOptions {
  Catalog catalog = Catalog::built_in();  ///< the operations that can be evaluated
  std::string device = "auto";
  std::filesystem::path cache_directory;
  std::uint64_t seed = 0;         ///< of the inputs
  std::uint64_t flush_bytes = 0;  ///< CacheFlush's, for cold samples; 0: by the device's table
  int compile_threads = 0;        ///< candidates compiled ahead; 0: chosen for the device
  Avoided avoid;                  ///< features of the device that are not used
  bool sanitize = false;          ///< OpenOptions::sanitize; the process must be started for it
  bool reopen = true;  ///< open the device again after it was lost; a worker exits instead
};

/// A failure (`constraints`) that gives the figures of the first kernel that spills, if one does.
Result<void> check_spills(const std::vector<KernelFigures>& kernels);

/// Evaluates in this process. A kernel that hangs or crashes the driver takes the process along;
/// WorkerEvaluator contains that.
class LocalEvaluator : public Evaluator {
 public:
  /// Throws Error when the device can't be opened.
  explicit LocalEvaluator(const EvaluatorOptions& options);
  ~LocalEvaluator() override;

  const DeviceInfo& device() const override { return info_; }
  const Catalog& catalog() const override { return options_.catalog; }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override;
  int lookahead() const override;
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override;
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override;
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override;
  void renew() override { open(); }
  std::vector<Trial> take_lost() override { return std::exchange(undone_, {}); }
  std::vector<Ceiling> measure_ceilings() override;

  /// The device was lost and EvaluatorOptions::reopen is off: nothing more can be evaluated.
  bool lost() const { return lost_; }

 private:
  struct Open;  // everything that lives on the device

  void open();
  /// Opens the device where that failed the last time.
  void ensure_open();
  /// Opens a lost device again.
  void recover();
  /// The same; where it fails, the trial that the device was lost in is kept.
  void recover_from(const Trial& ended);
  Result<LaunchPlan> plan_of(const Problem& problem, const Config& config) const;
  Result<Workload*> workload(const Problem& problem, std::uint64_t seed, InputStyle style);
  Result<PreparedPlan> make_candidate(const Problem& problem, const Config& config, Trial& trial);
  Result<void> check(const PreparedPlan& candidate, const TrialLimits& limits, Trial& trial);
  Result<void> check_small(const Problem& problem, const Config& config,
                           const PreparedPlan& candidate, const TrialLimits& limits, Trial& trial);
  Result<PreparedPlan> checked(const Problem& problem, const Config& config, std::uint64_t seed,
                               InputStyle style, const TrialLimits& limits, Trial& trial);
  LaunchTimer& timer(const TrialLimits& limits);
  Result<Measurement> measure(const PreparedPlan& candidate, const TrialLimits& limits);
  Result<void> prepare_rounds(const Problem& problem, const std::vector<Config>& configs);
  /// Runs one trial's steps; on a lost device opens it again.
  Trial run_trial(const Problem& problem, const Config& config,
                  const std::function<Result<void>(Trial&)>& steps);

  EvaluatorOptions options_;
  DeviceInfo info_;
  std::unique_ptr<Open> open_;
  bool lost_ = false;
  std::vector<Trial> undone_;  ///< what take_lost() gives
};

}  // namespace greta::tuner
