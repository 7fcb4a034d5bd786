#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/bench/call_processes.hpp"
#include "tuner/bench/kernel_benchmarks.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::tuner::cli {

/// One device that is benchmarked: open in this process for timing, and in a worker for checking.
class DeviceBench {
 public:
  struct Options {
    bool winners = true;    ///< what a runtime would find in `databases`, else a problem's default
    bool defaults = false;  ///< defaults, besides or instead
    LookupFiles databases;
    bool allow_unsafe = false;
    KernelBenchmarks::Options kernels;
  };

  /// Throws Error where the device can't be opened. Measures the device's ceilings, unless the
  /// database has them.
  DeviceBench(const ProbedDevice& device, TunedDb& db, const Options& options);

  /// All benchmarks of a preset. What the device can't do, and what is not tuned, is told in
  /// notes().
  std::vector<Benchmark> benchmarks(const Preset& preset);

  /// What will be taken of the benchmarks whose blocks are of processes of their own, by name.
  void expect_calls(const std::vector<std::string>& names) { calls_->expect(names); }

  /// As it may be used: without what failed its health check.
  const DeviceInfo& info() const { return checker_->device(); }
  Evaluator& checker() { return *checker_; }
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  void learn_ceilings(TunedDb& db);
  void add_problem(const PresetProblem& listed, std::vector<Benchmark>& list);
  const Answer* look_up(const Problem& problem);
  void tell_origins(std::size_t problems);

  Options options_;
  TunedDb& db_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<WorkerEvaluator> checker_;
  std::optional<CallProcesses> calls_;
  std::optional<KernelBenchmarks> kernels_;
  std::optional<Lookup> lookup_;  // none: defaults only
  std::vector<std::string> notes_;
  std::map<LookupOrigin, std::size_t> origins_;  // of problems
};

}  // namespace greta::tuner::cli
