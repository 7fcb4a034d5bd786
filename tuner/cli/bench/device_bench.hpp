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

/// One benchmarked device: open in this process for timing, and in a worker for checking.
class DeviceBench {
 public:
  struct Options {
    bool winners = true;    ///< what a runtime finds in `databases`, else the default
    bool defaults = false;  ///< defaults in addition or instead
    LookupFiles databases;
    bool allow_unsafe = false;
    bool ceilings = true;  ///< measure the device's ceilings unless the database contains them
    KernelBenchmarks::Options kernels;
  };

  /// Throws Error if the device can't be opened.
  DeviceBench(const ProbedDevice& device, TunedDb& db, const Options& options);

  /// Returns all benchmarks of a preset. notes() lists unsupported ones and problems that are not
  /// tuned.
  std::vector<Benchmark> benchmarks(const Preset& preset);

  /// Sets the names of the benchmarks that will be taken in separate processes.
  void expect_calls(const std::vector<std::string>& names) { calls_->expect(names); }

  /// Returns the device without the features that failed their health checks.
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
  std::optional<Lookup> lookup_;  // empty: defaults only
  std::vector<std::string> notes_;
  std::map<LookupOrigin, std::size_t> origins_;  // number of problems
};

}  // namespace greta::tuner::cli
