// Adds the SPLIT partial sums of each element, in a fixed order, and finishes it. A thread takes
// a unit of a row.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined and at least 2"
#endif

#include "gemm/slices.hip"

// Slices whose loads are in flight at once: those of 32 take more registers than a thread gets on
// NVIDIA.
#define AT_ONCE (SPLIT < 16 ? SPLIT : 16)

GRETA_KERNEL(256) gemm_reduce(GEMM_PARAMETERS) {
  begin_launch();
  const Arguments args = GEMM_ARGUMENTS;
  // workspace_constraint() admits no more units than 32 bits count: 64-bit divisions take longer than
  // the additions.
  const u32 cols = product_cols(args), units = (cols + unit_columns - 1) / unit_columns;
  const u32 id = block_index<256>() * 256 + thread_index();
  if (id >= m * units) return;
  const u32 row = id / units, col = id % units * unit_columns;
  UnitResidual ahead;
  ahead.load(args, row, col);
  float sum[unit_columns] = {};
  GRETA_NO_UNROLL
  for (u32 first = 0; first < SPLIT; first += AT_ONCE) {
    float part[AT_ONCE][unit_columns] = {};
    GRETA_UNROLL
    for (u32 s = 0; s < AT_ONCE; ++s) {
      if (SPLIT % AT_ONCE == 0 || first + s < SPLIT) {
        get_partial_unit(args, first + s, row, col, part[s]);
      }
    }
    GRETA_UNROLL
    for (u32 j = 0; j < unit_columns; ++j) {
      GRETA_UNROLL
      for (u32 s = 0; s < AT_ONCE; ++s) sum[j] += part[s][j];
    }
  }
  put_unit(args, row, col, sum, ahead);
}
