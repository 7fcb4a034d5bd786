// Adds the SPLIT partial sums of each element, in a fixed order, and finishes it. A thread takes
// four neighbours of a row.

#if !defined(SPLIT) || SPLIT < 2
#error "SPLIT must be defined and at least 2"
#endif

#include "gemm/slices.hip"

GRETA_KERNEL(256) gemm_reduce(GEMM_PARAMETERS) {
  const Arguments args = GEMM_ARGUMENTS;
  // Where the partial sums fit into memory, their fours can be counted in 32 bits: 64-bit divisions
  // take longer than the additions.
  const u32 groups = n / 4 + (n % 4 != 0);
  const u32 id = block_index<256>() * 256 + thread_index();
  if (id >= m * groups) return;
  const u32 row = id / groups, col = id % groups * 4;
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
