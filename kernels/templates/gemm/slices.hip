// Slices of K that are added in the launch that computes them, by the last one to arrive.
#pragma once

#include "common/arrival.hip"
#include "gemm/operands.hip"

// A slice's sums of four neighbours of one row; `col` is a multiple of 4, and what lies past the
// edge stays as it is.
GRETA_DEVICE void get_partial4(const Arguments& args, u32 slice, u32 row, u32 col,
                               float (&sum)[4]) {
  const float* const first = partial_sum(args, slice, row, col);
#if STORE_VEC == 4
  if (col >= product_cols(args)) return;
  const Pack<float, 4> pack = load_pack<4>(first);
  GRETA_UNROLL
  for (int j = 0; j < 4; ++j) sum[j] = element(pack, j);
#else
  GRETA_UNROLL
  for (int j = 0; j < 4; ++j) {
    if (col + j < product_cols(args)) sum[j] = first[j];
  }
#endif
}
