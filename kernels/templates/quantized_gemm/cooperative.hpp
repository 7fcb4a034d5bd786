#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/quantized_gemm/shape.hpp"

/// The variant `matrix` in GLSL: cooperative matrices, in matrix.comp.
namespace greta::kernels::quantized_gemm {

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device);
LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, const Config& config);
KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config);
std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device);
std::vector<Division> cooperative_divisions(const Shape& shape, const Config& config);

}  // namespace greta::kernels::quantized_gemm
