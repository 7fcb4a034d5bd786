// Adds the SPLIT partial sums of each element, in a fixed order, and finishes it. A thread takes
// four neighbours of a row.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined and at least 2"
#endif

#include "gemm/slices.hip"

GRETA_KERNEL(256) gemm_reduce(GEMM_PARAMETERS) {
  const Arguments args = GEMM_ARGUMENTS;
  const u32 groups = n / 4 + (n % 4 != 0);
  const u64 id = u64(block_index<256>()) * 256 + thread_index();
  if (id >= u64(m) * groups) return;
  const u32 row = u32(id / groups), col = u32(id % groups) * 4;
  float part[SPLIT][4] = {};  // all loads are in flight at once
  GRETA_UNROLL
  for (u32 s = 0; s < SPLIT; ++s) {
    get_partial4(args, s, row, col, part[s]);
  }
  float sum[4];
  GRETA_UNROLL
  for (int j = 0; j < 4; ++j) {
    sum[j] = part[0][j];
    GRETA_UNROLL
    for (u32 s = 1; s < SPLIT; ++s) sum[j] += part[s][j];
  }
  put4(args, row, col, sum);
}
