#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/planning/render.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// ALIGN: operands whose stored rows do not begin at multiples of 16 bytes are first copied to
/// padded rows, so that wide loads can read them. Shared parts of the variants that support this.
namespace greta::kernels::gemm {

/// Return whether A or B has stored rows that do not begin at multiples of 16 bytes.
bool has_odd_a(const Shape& shape);
bool has_odd_b(const Shape& shape);
/// Returns whether A or B does.
bool has_odd_lines(const Shape& shape);
/// Returns the constraints that VA divides the leading dimension of A, and VB that of B, unless
/// ALIGN pads them.
std::vector<Constraint> alignment_constraints(const Shape& shape);
/// Returns the constraint that loads along stored rows are wide: VA or VB is at least half of the
/// widest possible width, or equals `copy`.
Constraint wide_enough(const char* name, const char* parameter, DType type, std::int64_t stride,
                       int copy = 0);
/// Returns the largest number of workgroups of slices: more would only add partial sums.
std::int64_t most_slices(const DeviceInfo& device);
/// Returns the constraints of SPLIT: at least BK elements of K per slice, at most most_slices()
/// workgroups, and room for the operands next to partial sums and copies.
std::vector<Constraint> slice_constraints(const Shape& shape, const DeviceInfo& device);

/// Adds ALIGN_A and ALIGN_B.
void add_alignment(Defines& defines, const Shape& shape, const Config& config);
/// With ALIGN, inserts a launch of the kernel `align` before the others, and makes the matrix
/// product read the copies.
void add_alignment(LaunchPlan& plan, const Shape& shape, const DeviceInfo& device,
                   const Config& config);

}  // namespace greta::kernels::gemm
