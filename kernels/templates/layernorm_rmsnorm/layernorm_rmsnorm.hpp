#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Y = y / sqrt(mean of y^2 + epsilon) * gain with y = (X - mean) / sqrt(variance + epsilon) *
/// weight + bias: the rmsnorm of the layernorm of each row of a row-major matrix of rows x
/// cols. weight, bias and gain are 1 x cols; y is f32. affine=weight leaves out the bias, none all
/// three. Squares and their sums are f32: distances from the mean should stay below 1e17.
Operation make_layernorm_rmsnorm();

}  // namespace greta::kernels
