#pragma once

#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// A GPU with these matrix cores as Vulkan shows it.
DeviceInfo cooperative_gpu(std::vector<MatrixOperation> operations);

/// What an H200 lists.
extern const std::vector<MatrixOperation> nvidia_products;
/// Products that are not square, as Intel's GPUs have.
extern const std::vector<MatrixOperation> intel_products;

/// Compiles every kernel of a plan with this macro, as a device with that extension does. Expects
/// SPIR-V that needs what the plan says, and that SPIRV-Tools find valid where they know the
/// extension.
void expect_valid(const DeviceInfo& info, const LaunchPlan& plan, const std::string& macro);

}  // namespace greta::test
