// One block replaces the counts of runs by those of the runs before, and finds each expert's number
// of assignments and its first row.

#include "permute/places.hip"

GRETA_KERNEL(THREADS)
permute_scan(u32* counts, u32* __restrict__ totals, u32* __restrict__ starts, u32 runs) {
  begin_launch();
  constexpr u32 ahead = 8;
  GRETA_SHARED(u32, count, EXPERTS);
  GRETA_SHARED(u32, start, EXPERTS);
  GRETA_SHARED(u32, part, THREADS);
  if (block_index<THREADS>() != 0) return;
  for (u32 e = thread_index(); e < EXPERTS; e += THREADS) {
    u32 sum = 0;
    for (u32 first = 0; first < runs; first += ahead) {
      u32 of_run[ahead];
      GRETA_UNROLL
      for (u32 i = 0; i < ahead; ++i) {
        of_run[i] = first + i < runs ? counts[u64(first + i) * EXPERTS + e] : 0;
      }
      GRETA_UNROLL
      for (u32 i = 0; i < ahead; ++i) {
        if (first + i < runs) counts[u64(first + i) * EXPERTS + e] = sum;
        sum += of_run[i];
      }
    }
    count[e] = sum;
  }
  block_barrier();
  find_starts(count, start, part);
  for (u32 e = thread_index(); e < EXPERTS; e += THREADS) {
    totals[e] = count[e];
    starts[e] = start[e];
  }
}
