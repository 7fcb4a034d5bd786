#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation Y = (X - mean) / sqrt(variance + epsilon) * weight + bias on each row. The
/// matrices are row-major, rows x cols; weight and bias are 1 x cols. Squares and their sum are
/// f32, so distances from the mean should stay below 1e17.
Operation make_layernorm();

}  // namespace greta::kernels
