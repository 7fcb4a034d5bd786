// Counts the experts of each run of THREADS assignments.

#include "permute/places.hip"

GRETA_KERNEL(THREADS)
permute_count(const int* GRETA_READ ids, u32* __restrict__ counts, u32 assignments) {
  begin_launch();
  GRETA_SHARED(u32, count, EXPERTS);
  const u32 run = block_index<THREADS>(), me = thread_index();
  if (run > (assignments - 1) / THREADS) return;
  for (u32 e = me; e < EXPERTS; e += THREADS) count[e] = 0;
  block_barrier();
  const u32 at = run * THREADS + me;
  const u32 expert = at < assignments ? u32(ids[at]) : EXPERTS;
  if (expert < EXPERTS) count_up(count + expert);
  block_barrier();
  for (u32 e = me; e < EXPERTS; e += THREADS) counts[u64(run) * EXPERTS + e] = count[e];
}
