#pragma once

#include "kernels/templates/latent_attention/shape.hpp"

/// The variant `matrix` in GLSL, with cooperative matrices.
namespace greta::kernels::latent {

Alternative cooperative_space(const Shape& shape, const DeviceInfo& device);
std::vector<Config> cooperative_defaults(const Shape& shape, const DeviceInfo& device);
KernelWork cooperative_work(const Shape& shape, const DeviceInfo& device, const Config& config);
/// `path` is that of the kernel's entry.
LaunchPlan cooperative_plan(const Shape& shape, const DeviceInfo& device, std::string_view path,
                            const Config& config);

}  // namespace greta::kernels::latent
