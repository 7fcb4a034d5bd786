#pragma once

#include <random>
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

/// Returns a random configuration of the variant `matrix`, for this length of K, whose subgroups
/// have few products of matrices: each of a K step is compiled for a CPU, which takes long, and
/// lavapipe ends loops of many iterations.
Config sample_of_few_products(const Space& space, std::int64_t k, std::mt19937_64& random);

/// Runs a plan on a device without matrix cores, by plain arithmetic in place of them. Expects that
/// it is within the problem's bound. `info` is the GPU that the configuration is for.
void expect_right_emulated(Device& device, const DeviceInfo& info, const Problem& problem,
                           const Config& config, const std::vector<HostTensor>& inputs);

}  // namespace greta::test
