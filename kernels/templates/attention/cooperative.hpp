#pragma once

#include "kernels/templates/attention/shape.hpp"

/// The variant `matrix` in GLSL, with cooperative matrices.
namespace greta::kernels::attention {

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device);
std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device);
/// Those for few queries of heads that share a KV head.
std::vector<Config> cooperative_packed_defaults(const Shape& shape, const DeviceInfo& device);
KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config);
LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, const Config& config);

}  // namespace greta::kernels::attention
