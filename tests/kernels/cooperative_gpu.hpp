#pragma once

#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns a GPU with these matrix cores as Vulkan reports it.
DeviceInfo cooperative_gpu(std::vector<MatrixOperation> operations);

/// The operations of an H200.
extern const std::vector<MatrixOperation> nvidia_products;
/// Operations that are not square, as on Intel's GPUs.
extern const std::vector<MatrixOperation> intel_products;

/// Compiles every kernel of a plan with this macro, as for a device with that extension. Expects
/// SPIR-V that requires what the plan states, and that SPIRV-Tools accept if they know the
/// extension.
void expect_valid(const DeviceInfo& info, const LaunchPlan& plan, const std::string& macro);

}  // namespace greta::test
