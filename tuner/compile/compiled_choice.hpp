#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "kernels/candidates.hpp"
#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"

namespace greta::tuner {

/// One kernel of a plan as its compiler left it.
struct CompiledKernel {
  std::vector<std::byte> code_object;  ///< empty where a driver keeps it to itself
  KernelStatistics statistics;
  std::optional<std::string> listing;  ///< its instructions as text, where a program lists them
  bool counted = false;                ///< whether matrix instructions were, in `statistics`
};

/// A configuration of a problem, compiled for an architecture.
struct CompiledChoice {
  Candidate choice;
  std::string architecture;
  LaunchPlan plan;
  std::vector<CompiledKernel> kernels;  ///< of plan.sources, in their order
};

/// What came of compiling a configuration.
struct CompileOutcome {
  Candidate choice;
  Result<CompiledChoice> compiled;
};

}  // namespace greta::tuner
