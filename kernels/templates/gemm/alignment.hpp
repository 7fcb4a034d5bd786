#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/common/render.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// ALIGN: operands whose lines do not start at multiples of 16 bytes are copied first, so that wide
/// loads can read them. What the variants that can do so share.
namespace greta::kernels::gemm {

/// Whether A, or B, has lines that do not start at multiples of 16 bytes.
bool has_odd_a(const Shape& shape);
bool has_odd_b(const Shape& shape);
/// VA must divide A's lines, and VB B's, unless ALIGN makes them longer.
std::vector<Constraint> alignment_constraints(const Shape& shape);
/// Loads along lines may as well be wide: VA, or VB, is at least half as wide as it could be, or
/// `copy`.
Constraint wide_enough(const char* name, const char* parameter, DType type, std::int64_t stride,
                       int copy = 0);
/// What SPLIT must leave: steps for each slice, few workgroups for each compute unit, and with the
/// copies room for the operands.
std::vector<Constraint> slice_constraints(const Shape& shape, const DeviceInfo& device);

/// ALIGN_A and ALIGN_B.
void add_alignment(Defines& defines, const Shape& shape, const Config& config);
/// With ALIGN, puts a launch of the kernel `align` before the plan's others, the first of which
/// then reads the copies.
void add_alignment(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device,
                   const Config& config);

}  // namespace greta::kernels::gemm
