#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// Y = softmax(scale * X + mask) of each row of a row-major matrix of rows x cols. With the
/// causal mask, row r sees its first r mod cols + 1 columns, as in square matrices of scores that
/// are stacked; the additive one is a tensor of X's shape and type. With place=in, Y is X's memory.
///
/// A row of which nothing is visible, or that is -inf throughout, gives zeros. Elements that are
/// +inf share the row's 1 evenly. A row with a visible NaN is NaN. Scaled elements are f32: what
/// f32 can't hold counts as infinite.
Operation make_softmax();

}  // namespace greta::kernels
