#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/vulkan/glsl_compiler.hpp"

namespace greta::device::vulkan {

/// Creates a Vulkan backend. It loads the installed drivers when it is first used.
std::unique_ptr<Backend> create_backend();

/// Returns the options that the compiler of vulkan:`index` gets besides those of a kernel. Fails
/// like translate().
Result<std::vector<std::string>> device_options(int index);

/// Returns the SPIR-V that compiling a kernel on vulkan:`index` hands to the driver. The driver is
/// only asked to list its devices. Fails with `unavailable` where there is no such device, and like
/// compile_glsl().
Result<Spirv> translate(int index, KernelSource source);

}  // namespace greta::device::vulkan
