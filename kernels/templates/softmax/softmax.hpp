#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Makes the operation Y = softmax(scale * X + mask) on each row of a row-major matrix of rows x
/// cols. With the causal mask, row r attends to its first r mod cols + 1 columns, as in stacked
/// square score matrices. The additive mask is a tensor of X's shape and type. With place=in, Y
/// replaces X in memory.
///
/// A row that is fully masked or -inf throughout gives zeros. +inf elements share the row's sum of
/// 1 evenly. A row with an unmasked NaN is NaN. Scaled elements are f32, so values beyond its range
/// count as infinite.
Operation make_softmax();

}  // namespace greta::kernels
