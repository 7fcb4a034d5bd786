#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/counter_reader.hpp"
#include "tuner/evaluate/local_evaluator.hpp"
#include "tuner/evaluate/small_checks.hpp"
#include "tuner/evaluate/workload.hpp"
#include "tuner/measure/cache_flush.hpp"
#include "tuner/measure/stopwatch.hpp"

namespace greta::tuner {

/// What a LocalEvaluator has of its device.
struct LocalEvaluator::Open {
  explicit Open(const DeviceInfo& info) : rounds(info) {}

  std::unique_ptr<Device> device;
  std::unique_ptr<CompileAhead> compiler;
  struct Announced {
    Problem problem;
    LaunchPlan plan;
    std::vector<std::string> kernels;  // being compiled ahead
  };
  std::map<Config, Announced> announced;
  std::optional<LaunchTimer> cold_timer;
  std::optional<LaunchTimer> warm_timer;
  std::optional<Workload> workload;
  std::optional<SmallChecks> small;          // checks for the last evaluated problem
  std::unique_ptr<CounterReader> counters;   // opened when first counted
  std::optional<CacheFlush> counters_flush;  // before each pass of cold counts
  RoundTimer rounds;                         // holds candidates of the workload's problem
};

}  // namespace greta::tuner
