#pragma once

#include <string>

#include "kernels/model/operation.hpp"
#include "kernels/templates/scaled_gemm/shape.hpp"

/// What problems of scaled products have in common, with groups and without.
namespace greta::kernels::scaled_gemm {

/// Checks that rows are whole loads of 16 bytes, and that sums of integers fit 32 bits.
Result<void> check_numbers(const Shape& shape);

/// Returns the attribute that says what shares a scale: `operand`, or less.
Attribute scales_attribute(const std::string& operand);

/// Returns the dimension k.
Dimension numbers_of_line();

}  // namespace greta::kernels::scaled_gemm
