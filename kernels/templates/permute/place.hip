// The places of a run of THREADS assignments: after those of the same expert in earlier runs, and
// earlier in this one.

#include "permute/places.hip"

GRETA_KERNEL(THREADS)
permute_place(const int* GRETA_READ ids, const u32* GRETA_READ counts, const u32* GRETA_READ starts,
              int* __restrict__ places, u32 assignments) {
  begin_launch();
  GRETA_SHARED(u32, experts, THREADS);
  const u32 run = block_index<THREADS>(), me = thread_index();
  if (run > (assignments - 1) / THREADS) return;
  const u32 at = run * THREADS + me;
  const u32 expert = at < assignments ? u32(ids[at]) : EXPERTS;
  experts[me] = expert;
  block_barrier();
  if (at >= assignments) return;
  int place = -1;
  if (expert < EXPERTS) {
    u32 rank = counts[u64(run) * EXPERTS + expert];
    for (u32 i = 0; i < me; ++i) rank += experts[i] == expert ? 1 : 0;
    place = place_of(starts[expert], rank);
  }
  places[at] = place;
}
