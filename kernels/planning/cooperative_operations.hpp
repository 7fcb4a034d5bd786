#pragma once

#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/planning/render.hpp"
#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"
#include "runtime/device/kernel_source.hpp"

/// Cooperative-matrix operations available to GLSL kernels.
namespace greta::kernels {

/// Returns the device's operations for 16-bit inputs: the largest one for each n.
std::vector<MatrixOperation> cooperative_products(DType in, const DeviceInfo& device);
/// Returns the operation with this n, or an operation that fits no tile if there is none.
MatrixOperation product_of(const std::vector<MatrixOperation>& products, int n);
/// Returns the values of a parameter that selects an operation by its n; never empty.
std::vector<int> product_names(const std::vector<MatrixOperation>& products);
/// Returns the values of a parameter SUBGROUP in ascending order; never empty.
std::vector<int> subgroup_sizes(const DeviceInfo& device);

/// Adds INSTR_M, INSTR_N and INSTR_K: the operation of a kernel.
void add_operation(Defines& defines, const MatrixOperation& operation);
/// Makes a kernel require subgroups of SUBGROUP, where the device can choose their size.
void require_subgroups(KernelSource& kernel, const DeviceInfo& device, const Config& config);

/// The registers that kernels with cooperative matrices need, over their estimates, which the
/// spaces use as limits.
constexpr double beside_matrices = 1.15;

}  // namespace greta::kernels
