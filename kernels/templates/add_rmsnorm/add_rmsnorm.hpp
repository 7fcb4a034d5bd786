#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation sum = X + residual, Y = sum / sqrt(mean of sum^2 + epsilon) * weight on each
/// row. The matrices are row-major, rows x cols; weight is 1 x cols. Y is computed from the f32 sum
/// before it is rounded to the output's type. Squares and their sum are f32, so elements of f32 and
/// bf16 should stay below 1e17.
Operation make_add_rmsnorm();

}  // namespace greta::kernels
