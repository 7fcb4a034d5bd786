#pragma once

#include <vector>

#include "kernels/model/config.hpp"
#include "kernels/templates/gemm/shape.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::kernels::gemm {

/// Returns configurations of `tma` of which one is the untuned answer: some tiles with slices of K
/// and clusters, by a simple estimate of their run time. The static prior picks one.
std::vector<Config> tma_defaults(const Shape& shape, const DeviceInfo& device);

}  // namespace greta::kernels::gemm
