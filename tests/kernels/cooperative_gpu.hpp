#pragma once

#include <string>
#include <vector>

#include "kernels/model/kernel_template.hpp"

namespace greta::test {

/// A GPU with these matrix cores as Vulkan shows it.
DeviceInfo cooperative_gpu(std::vector<MatrixOperation> operations);

/// What an H200 lists.
extern const std::vector<MatrixOperation> nvidia_products;
/// Products that are not square, as Intel's GPUs have.
extern const std::vector<MatrixOperation> intel_products;

/// Compiles every kernel of a plan with this macro, as a device with that extension does, and where
/// SPIRV-Tools know the extension
/// expects valid SPIR-V that needs what the plan says.
void expect_valid(const DeviceInfo& info, const LaunchPlan& plan, const std::string& macro);

}  // namespace greta::test
