#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device::vulkan {

/// SPV_KHR_cooperative_matrix out of what glslang makes of GL_NV_cooperative_matrix, which every
/// release knows, as glslang 12 has no text for the former and none before 15.3 has one for
/// matrices of bf16. With the KHR form a driver knows which operand of a product a matrix is, and
/// can load it in that operand's order; NVIDIA's otherwise transposes second operands for every
/// product.
///
/// What a matrix is for is told by specialisation constants (common/cooperative_matrix.glsl): the
/// rows of first operands and the columns of second ones are one, and its SpecId says which and of
/// what type. They become plain constants. Matrices without one must be of f32: sums.
///
/// Fails with `compile` on matrices that don't follow this. Sources: the specifications of
/// SPV_NV_cooperative_matrix, SPV_KHR_cooperative_matrix and SPV_KHR_bfloat16.
Result<std::vector<std::uint32_t>> to_khr_matrices(const std::vector<std::uint32_t>& spirv);

/// SpecIds of the constants.
enum class MatrixRole : std::uint32_t { a_f16 = 1, b_f16 = 2, a_bf16 = 3, b_bf16 = 4 };

}  // namespace greta::device::vulkan
