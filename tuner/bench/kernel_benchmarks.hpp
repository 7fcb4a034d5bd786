#pragma once

#include <list>
#include <memory>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/launch/operands.hpp"
#include "kernels/launch/prepared_plan.hpp"
#include "runtime/device/device.hpp"
#include "tuner/bench/benchmark.hpp"
#include "tuner/bench/steady_work.hpp"
#include "tuner/bench/trace.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::tuner {

/// Operations of the catalog as benchmarks. A configuration is checked against the reference by an
/// evaluator (in a process of its own, where that is a WorkerEvaluator) before it is timed in this
/// process, on the device's own clock.
class KernelBenchmarks {
 public:
  struct Options {
    bool cold = true;
    double timeout_s = 30;          ///< of one launch
    std::uint64_t flush_bytes = 0;  ///< CacheFlush's, for cold samples; 0: by the device's table
    std::uint64_t seed = 0;         ///< of inputs; a run's are drawn from seed + run
    std::vector<Ceiling> ceilings;
    Trace* trace = nullptr;  ///< told of every timed launch; may be null
  };

  /// Compiles the kernels that timing needs. Device and evaluator must outlive this, and this its
  /// benchmarks. Throws Error where the device can't time.
  KernelBenchmarks(Device& device, Evaluator& checker, const Options& options);
  ~KernelBenchmarks();
  KernelBenchmarks(const KernelBenchmarks&) = delete;
  KernelBenchmarks& operator=(const KernelBenchmarks&) = delete;

  /// Operands stay on the device between calls while half of its memory holds them; those that were
  /// used last.
  Benchmark make(const Problem& problem, const Config& config, ResultOrigin origin);

 private:
  struct Loaded;  // a problem's operands, and plans that run on them
  struct Plan;

  Result<Loaded*> load(const Problem& problem);
  Result<Plan*> prepare(Loaded& loaded, const Config& config);
  Result<std::vector<double>> take(const Problem& problem, const Config& config, int count);
  Result<std::vector<double>> take_block(const LaunchTimer::Record& record, int& batch, int count,
                                         std::uint64_t written);
  Result<double> control();
  Result<std::vector<double>> take_samples(const LaunchTimer::Record& record, int count, int batch,
                                           std::uint64_t written);

  Device& device_;
  Evaluator& checker_;
  Options options_;
  std::optional<LaunchTimer> timer_;
  std::optional<CacheFlush> flush_;   // of a CPU, whose samples are taken one by one
  std::optional<SteadyWork> steady_;  // of a CPU
  ProcessorTime processor_;           // of the last block and control
  std::optional<DeviceTrace> trace_;
  std::list<std::unique_ptr<Loaded>> loaded_;  // the last used in front
};

/// Bytes of all operands of a problem.
std::uint64_t operand_bytes(const Operation& operation, const Problem& problem);

}  // namespace greta::tuner
