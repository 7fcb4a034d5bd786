#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::gemm {

/// KernelTemplate::plan, naive, default_config and stand_in of GEMM.
Result<LaunchPlan> plan(const Problem& problem, const DeviceInfo& device, const Config& config);
Config naive_config();
Config default_config(const Problem& problem, const DeviceInfo& device);
Problem stand_in(const Problem& problem, double fraction);

}  // namespace greta::gemm
