#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation Y = y / sqrt(mean of y^2 + epsilon) * gain with y = (X - mean) /
/// sqrt(variance + epsilon) * weight + bias: the rmsnorm of the layernorm of each row. The matrices
/// are row-major, rows x cols; weight, bias and gain are 1 x cols; y is f32. affine=weight omits
/// the bias, none omits all three. Squares and their sums are f32, so distances from the mean
/// should stay below 1e17.
Operation make_layernorm_rmsnorm();

}  // namespace greta::kernels
