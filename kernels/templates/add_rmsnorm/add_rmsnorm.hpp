#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// sum = X + residual, and Y = sum / sqrt(mean of sum^2 + epsilon) * weight of each row of
/// row-major matrices of rows x cols; weight is 1 x cols. Y is computed of the sum in f32, before
/// it is rounded to the output's type. Squares and their sum are f32: elements of f32 and bf16
/// should stay below 1e17.
Operation make_add_rmsnorm();

}  // namespace greta::kernels
