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

/// Creates benchmarks of operations of the catalog, which this process times with the device's
/// timestamps.
class KernelBenchmarks {
 public:
  struct Options {
    bool cold = true;
    double timeout_s = 30;          ///< deadline of one launch, in seconds
    std::uint64_t flush_bytes = 0;  ///< cache flush of cold samples; 0: chosen for the device
    std::uint64_t seed = 0;         ///< run i draws inputs from seed + i
    std::vector<Ceiling> ceilings;
    Trace* trace = nullptr;  ///< receives every timed launch; may be null
    /// Checks configurations against the reference (in a worker process if it is a
    /// WorkerEvaluator). Null: the benchmarks have no check.
    Evaluator* checker = nullptr;
    double held_share = 0.5;  ///< fraction of the device's memory for operands
  };

  /// Compiles the kernels needed for timing. `info` describes the device without the features to
  /// avoid. The references must outlive this object, and this object its benchmarks. Throws Error
  /// if the device can't time launches.
  KernelBenchmarks(Device& device, const Catalog& catalog, const DeviceInfo& info,
                   const Options& options);
  ~KernelBenchmarks();
  KernelBenchmarks(const KernelBenchmarks&) = delete;
  KernelBenchmarks& operator=(const KernelBenchmarks&) = delete;

  /// Creates a benchmark. The most recently used operands stay on the device between calls.
  Benchmark make(const Problem& problem, const Config& config, ResultOrigin origin);

 private:
  struct Loaded;  // operands of a problem and the plans that use them
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
  const Catalog& catalog_;
  const DeviceInfo& info_;
  Options options_;
  std::optional<LaunchTimer> timer_;
  std::optional<CacheFlush> flush_;   // CPU only, where samples are taken one by one
  std::optional<SteadyWork> steady_;  // CPU only
  ProcessorTime processor_;           // CPU time of the last block and control
  std::optional<DeviceTrace> trace_;
  std::list<std::unique_ptr<Loaded>> loaded_;  // most recently used first
};

/// Returns how many samples a block has, `count` at most: as many as take about 3 s of the device's
/// time, of `device_us` each; on a CPU, whose caches are flushed before each sample, also as many
/// as take about 1 s in all, of `wall_us` each (0: not a CPU).
int samples_of_block(int count, double device_us, double wall_us);

/// Returns the total size of a problem's operands in bytes.
std::uint64_t operand_bytes(const Operation& operation, const Problem& problem);

}  // namespace greta::tuner
