#pragma once

#include <vector>

#include "runtime/device/device_info.hpp"
#include "runtime/device/dtype.hpp"

/// Products of cooperative matrices that kernels in GLSL choose from.
namespace greta::kernels {

/// What the device offers for inputs of 16 bits, one for each n: of several the largest.
std::vector<MatrixOperation> cooperative_products(DType in, const DeviceInfo& device);
/// The one with this n; one that fits nowhere where there is none.
MatrixOperation product_of(const std::vector<MatrixOperation>& products, int n);
/// Values of a parameter that names a product by its n; never empty.
std::vector<int> product_names(const std::vector<MatrixOperation>& products);
/// Values of a parameter SUBGROUP, from small to large; never empty.
std::vector<int> subgroup_sizes(const DeviceInfo& device);

}  // namespace greta::kernels
