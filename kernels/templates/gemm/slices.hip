// Slices of K that are added in the launch that computes them, by the last one to arrive.
#pragma once

#include "common/arrival.hip"
#include "gemm/operands.hip"

// A slice's sums of neighbours of one row; what lies past the edge stays as it is.
GRETA_DEVICE void get_partial_unit(const Arguments& args, u32 slice, u32 row, u32 col,
                                   float (&sum)[unit_columns]) {
  if (col >= product_cols(args)) return;
  const float* const first = partial_sum(args, slice, row, col);
  const Pack<float, unit_columns> pack = load_pack<unit_columns>(first);
  GRETA_UNROLL
  for (u32 j = 0; j < unit_columns; ++j) sum[j] = element(pack, j);
}
