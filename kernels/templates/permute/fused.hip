// Few assignments: a block takes a token, or completes an expert. Each counts all assignments on its
// own, so that one launch is enough.

#include "permute/copy_row.hip"

GRETA_KERNEL(THREADS)
permute_fused(const In* GRETA_READ x, const int* GRETA_READ ids, In* __restrict__ out,
              int* __restrict__ groups, int* __restrict__ places, u32 tokens, u32 dim) {
  begin_launch();
  GRETA_SHARED(u32, count, EXPERTS);
  GRETA_SHARED(u32, start, EXPERTS);
  GRETA_SHARED(u32, part, THREADS);
  GRETA_SHARED(u32, own, TOP_K);
  GRETA_SHARED(u32, rank, TOP_K);
  GRETA_SHARED(int, place, TOP_K);
  const u32 token = block_index<THREADS>(), me = thread_index();
  if (token >= tokens + FINISHERS) return;
  for (u32 e = me; e < EXPERTS; e += THREADS) count[e] = 0;
  if (me < TOP_K) {
    own[me] = token < tokens ? u32(ids[token * TOP_K + me]) : EXPERTS;
    rank[me] = 0;
  }
  block_barrier();
  for (u32 i = me; i < tokens * TOP_K; i += THREADS) {
    const u32 expert = u32(ids[i]);
    if (expert >= EXPERTS) continue;
    count_up(count + expert);
    for (u32 k = 0; k < TOP_K; ++k) {
      if (own[k] == expert && i < token * TOP_K + k) count_up(rank + k);
    }
  }
  block_barrier();
  find_starts(count, start, part);
  if (token >= tokens) {
    finish(token - tokens, count, start, groups, out, dim);
    return;
  }
  if (me < TOP_K) {
    place[me] = own[me] < EXPERTS ? place_of(start[own[me]], rank[me]) : -1;
    places[token * TOP_K + me] = place[me];
  }
  block_barrier();
  copy_row(x + u64(token) * dim, place, out, dim);
}
