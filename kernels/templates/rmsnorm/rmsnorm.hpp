#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation Y = X / sqrt(mean of X^2 + epsilon) * weight on each row. The matrices are
/// row-major, rows x cols; weight is 1 x cols. Squares and their sum are f32, so elements of f32
/// and bf16 should stay below 1e17.
Operation make_rmsnorm();

}  // namespace greta::kernels
