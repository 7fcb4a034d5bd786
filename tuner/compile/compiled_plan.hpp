#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "kernels/model/kernel_template.hpp"
#include "runtime/device/device.hpp"

namespace greta {

/// One kernel of a plan as its compiler left it.
struct CompiledKernel {
  std::vector<std::byte> code_object;  ///< empty where a driver keeps it to itself
  KernelStatistics statistics;
  std::string listing;  ///< its instructions as text
};

/// A configuration of a problem, compiled for an architecture.
struct CompiledPlan {
  Problem problem;
  Config config;
  std::string architecture;
  LaunchPlan plan;
  std::vector<CompiledKernel> kernels;  ///< of plan.sources, in their order
};

}  // namespace greta
