#pragma once

#include <cstdint>
#include <vector>

#include "runtime/device/result.hpp"

namespace greta::device::vulkan {

/// Converts the SPIR-V that glslang generates for GL_NV_cooperative_matrix, which every release of
/// glslang supports, to SPV_KHR_cooperative_matrix. glslang 12 has no GLSL extension for the
/// latter, and no release before 15.3 has one for matrices of bf16. The KHR form tells the driver
/// which operand of a multiplication a matrix is, so that the driver can load it in that operand's
/// layout. With the NV form, NVIDIA's driver transposes the second operand for every
/// multiplication.
///
/// Specialisation constants specify the use of a matrix (common/cooperative_matrix.glsl): the
/// number of rows of a first operand and the number of columns of a second one are such constants,
/// and the SpecId gives the operand and the element type. They become plain constants. Matrices
/// without such a constant are accumulators and must be of f32.
///
/// Fails with `compile` on matrices that don't follow these rules. Sources: the specifications of
/// SPV_NV_cooperative_matrix, SPV_KHR_cooperative_matrix and SPV_KHR_bfloat16.
Result<std::vector<std::uint32_t>> to_khr_matrices(const std::vector<std::uint32_t>& spirv);

/// The SpecIds of these constants.
enum class MatrixRole : std::uint32_t { a_f16 = 1, b_f16 = 2, a_bf16 = 3, b_bf16 = 4 };

}  // namespace greta::device::vulkan
