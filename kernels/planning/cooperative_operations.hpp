#pragma once

#include <vector>

#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"

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

/// The registers that kernels with cooperative matrices need, over their estimates, which the
/// spaces use as limits.
constexpr double beside_matrices = 1.15;

}  // namespace greta::kernels
