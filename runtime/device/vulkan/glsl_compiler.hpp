#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::vulkan {

using Spirv = std::vector<std::uint32_t>;

/// "glslang 12.0.0, SPIRV-Tools v2023.1"
const std::string& glsl_compiler_version();

/// To be raised whenever the choice of optimisation passes changes, or what is made of cooperative
/// matrices; part of the kernels' cache key.
constexpr std::string_view glsl_passes = "passes 2";

/// Compiles a compute shader to optimised SPIR-V 1.6. Its cooperative matrices are NV's, or KHR's
/// with the option that defines matrix_macro(CooperativeMatrix::khr). Thread-safe. Fails with
/// `compile`: the first error is the message, everything the compiler said is the log.
Result<Spirv> compile_glsl(const KernelSource& source);

/// Whether words from elsewhere are a module of SPIR-V, by the rules of Vulkan 1.3. Of modules with
/// KHR cooperative matrices, which releases of SPIRV-Tools before 2024 don't know, the form alone
/// is judged. Fails with `compile`.
Result<void> check_module(const Spirv& spirv);

}  // namespace greta::device::vulkan
