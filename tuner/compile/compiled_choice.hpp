#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/sampling/candidates.hpp"
#include "runtime/device/device.hpp"
#include "tuner/isa/loop_figures.hpp"

namespace greta::tuner {

/// One compiled kernel of a plan.
struct CompiledKernel {
  std::vector<std::byte> code_object;  ///< empty if a driver does not provide it
  KernelStatistics statistics;
  std::optional<std::string> listing;  ///< instructions as text, if available
  bool counted = false;                ///< whether `statistics` counts matrix instructions
  std::optional<LoopFigures> loop{};   ///< its main loop, on AMD GPUs with matrix cores
  /// What the compiler warns of that costs time (performance_warnings()).
  std::vector<std::string> warnings{};
};

/// A configuration of a problem, compiled for an architecture.
struct CompiledChoice {
  Candidate choice;
  std::string architecture;
  LaunchPlan plan;
  std::vector<CompiledKernel> kernels;  ///< in the order of plan.sources
};

/// The result of compiling a configuration.
struct CompileOutcome {
  Candidate choice;
  Result<CompiledChoice> compiled;
  /// The predicted time, divided by that of the first of a ranking; nothing if it was not ranked.
  std::optional<double> predicted{};
};

/// Orders the outcomes of one problem by their predicted times, now that the registers are known,
/// and sets CompileOutcome::predicted. Those that failed come last.
void rank_compiled(const Operation& operation, const DeviceInfo& target,
                   std::vector<CompileOutcome>& outcomes);

}  // namespace greta::tuner
