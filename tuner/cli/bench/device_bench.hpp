#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "db/tuned_db.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/bench/block_processes.hpp"
#include "tuner/bench/kernel_benchmarks.hpp"
#include "tuner/bench/preset.hpp"
#include "tuner/evaluate/worker_evaluator.hpp"

namespace greta::tuner::cli {

/// What is measured in separate processes, one for each block of samples.
enum class Processes {
  none,
  calls,      ///< calls of the host
  automatic,  ///< also short kernels on a GPU
  all,        ///< also all other kernels
};

/// The benchmarks that the gates of a problem are about, by their names.
struct GatedProblem {
  const PresetProblem* listed = nullptr;
  std::vector<std::string> subjects{};            ///< the fastest of them is judged
  std::string fallback{};                         ///< the default; empty: no gate compares with it
  std::map<std::string, std::string> variants{};  ///< those that gates compare with
  std::string skipped{};                          ///< why nothing of it runs; empty: something does
};

/// One benchmarked device: open in this process for timing, and in a worker for checking.
class DeviceBench {
 public:
  struct Options {
    bool winners = true;    ///< what a runtime finds in `databases`, else the default
    bool defaults = false;  ///< defaults in addition or instead
    LookupFiles databases;
    bool allow_unsafe = false;
    bool ceilings = true;  ///< measure the device's ceilings unless the database contains them
    Processes processes = Processes::automatic;
    bool vendor = false;  ///< open the vendor's library, too, if it is installed
    KernelBenchmarks::Options kernels;
  };

  /// Throws Error if the device can't be opened.
  DeviceBench(const ProbedDevice& device, TunedDb& db, const Options& options);

  /// Returns all benchmarks of a preset. notes() lists unsupported ones and problems that are not
  /// tuned.
  std::vector<Benchmark> benchmarks(const Preset& preset);

  /// Sets the benchmarks of which blocks will be taken. Others have no part in their processes.
  void expect(const std::vector<const Benchmark*>& benchmarks);

  /// Counts what these results of kernels on this device do on the hardware, in a process of its
  /// own that times nothing, and stores it in the database (count_results()).
  void count(const std::vector<MeasuredResult*>& results);

  /// Returns the device without the features that failed their health checks.
  const DeviceInfo& info() const { return checker_->device(); }
  Evaluator& checker() { return *checker_; }
  Device& device() { return *device_; }
  const std::vector<std::string>& notes() const { return notes_; }
  /// Returns the problems with gates for this device, in the preset's order; of benchmarks().
  const std::vector<GatedProblem>& gated() const { return gated_; }

 private:
  void learn_ceilings(TunedDb& db);
  void add_problem(const PresetProblem& listed, std::vector<Benchmark>& list);
  std::vector<Config> ways_of(const Operation& operation, const PresetProblem& listed);
  void add_answer(const Operation& operation, const PresetProblem& listed,
                  std::vector<Benchmark>& list);
  void add_parts(const Operation& operation, const PresetProblem& listed,
                 std::vector<Benchmark>& list);
  void add_references(const Operation& operation, GatedProblem& gated, std::vector<Benchmark>& list,
                      std::size_t first);
  Benchmark kernel(const Problem& problem, const Config& config, ResultOrigin origin);
  BlockProcesses& processes_of(const Benchmark& benchmark);
  const Answer* look_up(const Problem& problem);
  void tell_origins(std::size_t problems);

  Options options_;
  EvaluatorOptions evaluator_;
  TunedDb& db_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<WorkerEvaluator> checker_;
  std::optional<BlockProcesses> calls_;
  std::optional<BlockProcesses> kernels_apart_;  // on a CPU, where calls stay on one core
  std::optional<KernelBenchmarks> kernels_;
  std::optional<Lookup> lookup_;
  std::vector<std::string> notes_;
  std::vector<GatedProblem> gated_;
  std::map<LookupOrigin, std::size_t> origins_;  // number of problems
};

/// Returns whether a preset names the vendor's library, which is opened only then.
bool names_vendor(const Preset& preset);

}  // namespace greta::tuner::cli
