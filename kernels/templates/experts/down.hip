// The second of two launches: out is the sum over a token's experts of weight * down * h. A
// workgroup has THREADS / DOWN_LANES x DOWN_TN elements of a token; of the DOWN_LANES threads that
// share some, SLOTS parts take different experts.

#if !defined(DOWN_LANES) || !defined(DOWN_TN) || !defined(SLOTS)
#error "DOWN_LANES, DOWN_TN and SLOTS must be defined"
#endif
#if THREADS % DOWN_LANES != 0 || DOWN_LANES % SLOTS != 0 || DOWN_TN < 1
#error "DOWN_LANES divides THREADS, SLOTS divides DOWN_LANES; DOWN_TN is at least 1"
#endif

#include "experts/columns.hip"

GRETA_KERNEL(THREADS)
experts_down(const float* GRETA_READ h, const int* GRETA_READ ids, const float* GRETA_READ weights,
             const Stored* GRETA_READ down, const Scale* GRETA_READ scales,
             const u8* GRETA_READ zeros, Out* __restrict__ out, u32 tokens, u32 experts, u32 top_k,
             u32 dim, u32 hidden) {
  begin_launch();
  constexpr u32 waves = THREADS / wave_size, lanes = DOWN_LANES / SLOTS;
  GRETA_SHARED(float, wave_sums, DOWN_TN * (waves + 1));
  // Neighbours have the same elements of different tokens, as in gate.hip.
  const u32 token = block_index<THREADS>() % tokens, tile = block_index<THREADS>() / tokens;
  if (tile * (THREADS / DOWN_LANES * DOWN_TN) >= dim) return;  // the whole workgroup
  const u32 lane = thread_index() % DOWN_LANES;
  const u32 first = (tile * (THREADS / DOWN_LANES) + thread_index() / DOWN_LANES) * DOWN_TN;
  float total[DOWN_TN] = {};
  GRETA_NO_UNROLL
  for (u32 slot = lane / lanes; slot < top_k; slot += SLOTS) {
    const u32 pair = token * top_k + slot, expert = u32(ids[pair]);
    const float weight = weights[pair];
    if (!takes_part(expert, experts, weight)) continue;
    u32 line[DOWN_TN];
    GRETA_UNROLL
    for (u32 t = 0; t < DOWN_TN; ++t) {
      // Threads past the last element repeat it.
      line[t] = expert * dim + smaller(first + t, dim - 1);
    }
    float sum[DOWN_TN] = {};
    add_products<lanes>({down, scales, zeros, hidden, dim}, line, h + u64(pair) * hidden, lane % lanes,
                        sum);
    GRETA_UNROLL
    for (u32 t = 0; t < DOWN_TN; ++t) total[t] = multiply_add(weight, sum[t], total[t]);
  }
  GRETA_UNROLL
  for (u32 t = 0; t < DOWN_TN; ++t) {
    const float y = reduce_threads<DOWN_LANES>(total[t], Add{}, wave_sums + t * waves);
    if (lane == 0 && first + t < dim) out[u64(token) * dim + first + t] = narrow<Out>(y);
  }
}
