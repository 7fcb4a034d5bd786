// The results of sequences without keys, for which a vendor's library may compute 0 / 0: zeros, and log-sum-exps of
// minus infinity or, with sinks, the sinks. A workgroup clears the `rows` of a sequence, of V_DIM elements each.
#if !defined(V_DIM) || !defined(LSE) || !defined(SINKS)
#error "V_DIM, LSE and SINKS must be defined"
#endif

#include "common/in_out.hip"

GRETA_KERNEL(THREADS)
attention_clear_empty(const int* GRETA_READ lengths, const float* GRETA_READ sinks, Out* __restrict__ out,
                      float* __restrict__ lse, u32 rows, u32 heads) {
  begin_launch();
  const u32 sequence = block_index<THREADS>();
  if (lengths[sequence] > 0) return;  // of the whole workgroup
  Out* const first = out + u64(sequence) * rows * V_DIM;
  const Out zero = narrow<Out>(0.0f);
  for (u64 i = thread_index(); i < u64(rows) * V_DIM; i += THREADS) first[i] = zero;
#if LSE
  for (u32 row = thread_index(); row < rows; row += THREADS) {
    lse[u64(sequence) * rows + row] = SINKS ? sinks[row % heads] : float_from_bits(0xff800000U);
  }
#endif
}
