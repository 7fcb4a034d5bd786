#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Y = (X - mean) / sqrt(variance + epsilon) * weight + bias of each row of a row-major
/// matrix of rows x cols; weight and bias are 1 x cols. Squares and their sum are f32: distances
/// from the mean should stay below 1e17.
Operation make_layernorm();

}  // namespace greta::kernels
