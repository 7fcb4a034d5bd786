#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "kernels/templates/gemm/shape.hpp"

/// Where the matrices of GEMM lie: leading dimensions, distances of a batch's matrices, alignment.
namespace greta::kernels::gemm {

/// Returns the operands of a problem. The matrices of a batch are blocks of rows.
std::vector<TensorSpec> tensors(const Problem& problem);

/// Checks that B can lie in panels, if it does.
Result<void> check_panels(const Problem& problem);
/// Checks that the matrices of a batch do not overlap.
Result<void> check_apart(const Shape& shape);

/// Returns the attributes for leading dimensions, distances and offsets.
std::vector<Attribute> place_attributes();

/// Returns the notation of BLAS, in which matrices are column-major.
Notation column_major();

}  // namespace greta::kernels::gemm
