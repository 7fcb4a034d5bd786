#pragma once

#include "kernels/model/launch_work.hpp"
#include "kernels/planning/plan.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// TRANSPOSE: f32 operands that lie along k are first copied to rows of one k each, so that tiles
/// are copied to shared memory as threads read them.
namespace greta::kernels::gemm {

/// Returns whether A or B lies along k, in the only product.
bool has_operand_along_k(const Shape& shape);
/// Returns the shape with the copies as operands, whose rows are padded to 16 bytes, which it does
/// not tell.
Shape transposed(const Shape& shape);
/// Returns the size of the copies.
std::int64_t transposed_bytes(const Shape& shape);
/// Inserts a launch of the kernel `transpose` before the others, and makes the matrix product read
/// the copies.
void add_transposition(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device);
/// Returns the work of that launch.
LaunchWork work_of_transposition(const Shape& shape);

}  // namespace greta::kernels::gemm
