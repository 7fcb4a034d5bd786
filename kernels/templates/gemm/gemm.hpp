#pragma once

#include "kernels/model/operation.hpp"

namespace greta::kernels {

/// C = act(alpha * op(A) op(B) + bias + residual + beta * C), row-major and packed. op(A) is m x k,
/// op(B) is k x n, and C is m x n. bias is 1 x n and residual m x n, both of C's type. Accumulation
/// is in f32.
///
/// `layout` specifies how A and B are stored: n as op(A) or op(B), t transposed (tn: A is k x m;
/// nt: B is n x k). With beta = 0, C is not read. silu(x) = x / (1 + e^-x); gelu is the tanh form,
/// x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
Operation make_gemm();

}  // namespace greta::kernels
