#pragma once

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::device::vulkan {

/// A Vulkan backend. It lists the drivers that are there when it is first asked.
std::unique_ptr<Backend> create_backend();

/// A kernel as the SPIR-V that compiling it on vulkan:`index` hands to the driver, which is asked
/// for nothing but its list of devices. Fails with `unavailable` where there is no such device, and
/// as compile_glsl().
Result<Spirv> translate(int index, KernelSource source);

}  // namespace greta::device::vulkan
