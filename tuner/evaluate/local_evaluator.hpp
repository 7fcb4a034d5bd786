#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/evaluate/compile_ahead.hpp"
#include "tuner/evaluate/compile_slots.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/evaluate/failure_keeper.hpp"
#include "tuner/evaluate/round_timer.hpp"
#include "tuner/evaluate/workload.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// How an evaluator opens its device and draws its inputs.
struct EvaluatorOptions {
  Catalog catalog = Catalog::built_in();  ///< the operations that can be evaluated
  /// A name of select_device(); one with the card's address finds it wherever it is in the list.
  std::string device = "auto";
  std::filesystem::path cache_directory;
  std::uint64_t seed = 0;         ///< seed of the inputs
  std::uint64_t flush_bytes = 0;  ///< size of the flush for cold samples; 0: chosen for the device
  int compile_threads = 0;        ///< number of candidates compiled ahead; 0: chosen for the device
  std::string compile_slots;      ///< CompileSlots::path() that limits compiling; empty: no limit
  int compile_slot_count = 0;     ///< number of these slots
  Avoided avoid;                  ///< device features that must not be used
  Sanitize sanitize = Sanitize::none;  ///< OpenOptions::sanitize; requires a process started for it
  bool vendor = false;                 ///< OpenOptions::vendor
  bool emulated_matrices = false;      ///< OpenOptions::emulated_matrices; it then only verifies
  bool counters = false;               ///< OpenOptions::counters; the evaluator then only counts
  /// The folder where candidates that fail verification are kept as cases; empty: nowhere.
  std::filesystem::path keep_failed;
  bool reopen = true;  ///< reopen the device after it was lost; a worker exits instead
  /// Once set, calls of a WorkerEvaluator throw Error (`interrupted`) within half a second, even
  /// while a kernel runs. Must outlive the evaluator. A LocalEvaluator ignores it.
  const std::atomic<bool>* stop = nullptr;
};

/// Fails with `constraints` and the statistics of the first kernel that spills, if there is one.
Result<void> check_spills(const std::vector<KernelFigures>& kernels);

class SmallChecks;

/// Evaluates in this process. A kernel that hangs or crashes the driver ends the process;
/// WorkerEvaluator isolates such kernels.
class LocalEvaluator : public Evaluator {
 public:
  /// Throws Error if the device can't be opened.
  explicit LocalEvaluator(const EvaluatorOptions& options);
  ~LocalEvaluator() override;

  const DeviceInfo& device() const override { return info_; }
  const Catalog& catalog() const override { return options_.catalog; }
  void prepare(const Problem& problem, const std::vector<Config>& upcoming) override;
  std::size_t first_ready(const Problem& problem, const std::vector<Config>& announced) override;
  int lookahead() const override;
  Trial evaluate(const Problem& problem, const Config& config, const TrialLimits& limits) override;
  Trial verify(const Problem& problem, const Config& config, std::uint64_t seed,
               const TrialLimits& limits) override;
  Rounds time_rounds(const Problem& problem, const std::vector<Config>& configs, int rounds,
                     double seconds, std::uint64_t seed, const TrialLimits& limits) override;
  void renew() override { open(); }
  std::vector<Trial> take_lost() override { return std::exchange(undone_, {}); }
  Result<std::vector<Energy>> measure_energy(const Problem& problem,
                                             const std::vector<Config>& configs, int blocks,
                                             double seconds, const TrialLimits& limits) override;
  Result<CounterReading> count(const Problem& problem, const Config& config,
                               const std::vector<std::string>& counters,
                               const TrialLimits& limits) override;
  std::vector<Ceiling> measure_ceilings(const std::vector<std::string>& kinds) override;

  /// Returns whether the device was lost with EvaluatorOptions::reopen off, so that nothing more
  /// can be evaluated.
  bool lost() const { return lost_; }

 private:
  struct Open;  // all objects that belong to the device
  struct Candidate {
    LaunchPlan plan;
    PreparedPlan prepared;
  };

  void open();
  /// Opens the device if the last attempt failed.
  void ensure_open();
  /// Reopens a lost device.
  void recover();
  /// Reopens a lost device. If that fails, keeps the trial during which the device was lost.
  void recover_from(const Trial& ended);
  Result<LaunchPlan> plan_of(const Problem& problem, const Config& config) const;
  Result<Workload*> workload(const Problem& problem, const InputSeed& seed, InputStyle style);
  /// Returns the checks of this problem. Makes them if the last ones are another problem's.
  SmallChecks& small_checks(const Problem& problem, const Config& config, const LaunchPlan& plan);
  Result<Candidate> make_candidate(const Problem& problem, const Config& config, Trial& trial);
  Result<void> check(const PreparedPlan& candidate, const TrialLimits& limits, Trial& trial);
  Result<void> check_small(const Problem& problem, const Config& config, const Candidate& candidate,
                           const TrialLimits& limits, Trial& trial);
  Result<Candidate> checked(const Problem& problem, const Config& config, const InputSeed& seed,
                            InputStyle style, const TrialLimits& limits, Trial& trial);
  /// Checks a correct candidate on other problems that run its compiled kernels, of at most an
  /// eighth of the work of random problems, with inputs of both styles in turn.
  Result<void> check_others(const Problem& problem, const Config& config, const InputSeed& seed,
                            const Candidate& candidate, const TrialLimits& limits, Trial& trial);
  /// Runs a correct candidate again and compares the bits of its results.
  Result<void> repeat(const Problem& problem, const Config& config, const InputSeed& seed,
                      const Candidate& candidate, const TrialLimits& limits, Trial& trial);
  /// Keeps a candidate whose results on the workload are wrong, if wanted: on a small problem if
  /// the given one is too large for a case.
  void keep_wrong(const Problem& problem, const Config& config, const InputSeed& seed,
                  InputStyle style, const Candidate& candidate, const TrialLimits& limits,
                  const Failure& wrong);
  /// Keeps a candidate whose results on a small problem are wrong, if wanted.
  void keep_wrong_small(const Problem& problem, const Config& config, const Candidate& candidate,
                        const TrialLimits& limits, const Failure& wrong);
  LaunchTimer& timer(const TrialLimits& limits);
  Result<Measurement> measure(const PreparedPlan& candidate, const TrialLimits& limits);
  Result<void> prepare_rounds(const Problem& problem, const std::vector<Config>& configs);
  /// Runs the steps of one trial, and reopens the device if it was lost.
  Trial run_trial(const Problem& problem, const Config& config,
                  const std::function<Result<void>(Trial&)>& steps);

  EvaluatorOptions options_;
  CompileSlots slots_;
  DeviceInfo info_;
  std::unique_ptr<Open> open_;
  FailureKeeper keeper_;
  RecentConditions conditions_;
  bool lost_ = false;
  std::vector<Trial> undone_;  ///< returned by take_lost()
};

}  // namespace greta::tuner
