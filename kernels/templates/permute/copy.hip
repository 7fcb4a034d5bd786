// Many assignments, whose places are known: a block takes a token, or completes an expert.

#include "permute/copy_row.hip"

GRETA_KERNEL(THREADS)
permute_copy(const In* GRETA_READ x, const int* GRETA_READ places, const u32* GRETA_READ totals,
             const u32* GRETA_READ starts, In* __restrict__ out, int* __restrict__ groups,
             u32 tokens, u32 dim) {
  begin_launch();
  GRETA_SHARED(int, place, TOP_K);
  const u32 token = block_index<THREADS>();
  if (token >= tokens + FINISHERS) return;
  if (token >= tokens) {
    finish(token - tokens, totals, starts, groups, out, dim);
    return;
  }
  if (thread_index() < TOP_K) place[thread_index()] = places[u64(token) * TOP_K + thread_index()];
  block_barrier();
  copy_row(x + u64(token) * dim, place, out, dim);
}
