#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::vulkan {

using Spirv = std::vector<std::uint32_t>;

/// Returns text such as "glslang 12.0.0, SPIRV-Tools v2023.1".
const std::string& glsl_compiler_version();

/// A version that must be increased whenever the selection of optimisation passes or the
/// translation of cooperative matrices changes. It is part of the kernels' cache key.
constexpr std::string_view glsl_passes = "passes 2";

/// Compiles a compute shader to optimised SPIR-V 1.6. Its cooperative matrices are those of the NV
/// extension, or of the KHR extension with the option that defines
/// matrix_macro(CooperativeMatrix::khr). Thread-safe. Fails with `compile`: the message is the
/// first error, the log is the compiler's full output.
Result<Spirv> compile_glsl(const KernelSource& source);

/// Validates a module that was compiled elsewhere by the rules of Vulkan 1.3. For modules with KHR
/// cooperative matrices, which releases of SPIRV-Tools before 2024 don't support, only the division
/// into instructions is checked. Fails with `compile`.
Result<void> check_module(const Spirv& spirv);

}  // namespace greta::device::vulkan
