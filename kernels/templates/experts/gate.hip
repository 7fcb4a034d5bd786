// The first of two launches: h = silu(gate) * up of each pair of a token and one of its experts, in
// f32. A workgroup has THREADS / GATE_LANES x GATE_TN elements of a pair's h.

#if !defined(GATE_LANES) || !defined(GATE_TN)
#error "GATE_LANES and GATE_TN must be defined"
#endif
#if THREADS % GATE_LANES != 0 || GATE_TN < 1
#error "GATE_LANES divides THREADS; GATE_TN is at least 1"
#endif

#include "common/activation.hip"
#include "experts/columns.hip"

GRETA_KERNEL(THREADS)
experts_gate(const In* GRETA_READ x, const int* GRETA_READ ids, const float* GRETA_READ weights,
             const Stored* GRETA_READ gate_up, const Scale* GRETA_READ scales,
             const u8* GRETA_READ zeros, float* __restrict__ h, u32 pairs, u32 experts, u32 top_k,
             u32 dim, u32 hidden) {
  begin_launch_whole();
  constexpr u32 waves = THREADS / wave_size;
  GRETA_SHARED(float, wave_sums, 2 * GATE_TN * (waves + 1));
  // Neighbours have the same elements of different pairs, so that caches serve an expert's lines to
  // all of its tokens.
  const u32 pair = block_index<THREADS>() % pairs, tile = block_index<THREADS>() / pairs;
  if (tile * (THREADS / GATE_LANES * GATE_TN) >= hidden) return;  // the whole workgroup, as below
  const u32 expert = u32(ids[pair]);
  if (!takes_part(expert, experts, weights[pair])) return;
  const u32 lane = thread_index() % GATE_LANES;
  const u32 first = (tile * (THREADS / GATE_LANES) + thread_index() / GATE_LANES) * GATE_TN;
  u32 line[2 * GATE_TN];
  GRETA_UNROLL
  for (u32 t = 0; t < GATE_TN; ++t) {
    // Threads past the last element repeat it.
    line[t] = expert * 2 * hidden + smaller(first + t, hidden - 1);
    line[GATE_TN + t] = line[t] + hidden;
  }
  float sum[2 * GATE_TN] = {};
  add_products<GATE_LANES>({gate_up, scales, zeros, dim, 2 * hidden}, line, x + u64(pair / top_k) * dim, lane,
                           sum);
  GRETA_UNROLL
  for (u32 t = 0; t < GATE_TN; ++t) {
    float* const shared = wave_sums + 2 * t * waves;
    const float gate = reduce_threads<GATE_LANES>(sum[t], Add{}, shared);
    const float up = reduce_threads<GATE_LANES>(sum[GATE_TN + t], Add{}, shared + waves);
    if (lane == 0 && first + t < hidden) h[u64(pair) * hidden + first + t] = silu(gate) * up;
  }
}
