// The lengths of sequences as a vendor's library may read them: from 0 to `keys`.
#include "common/device.hip"

GRETA_KERNEL(THREADS)
attention_clamp_lengths(const int* GRETA_READ lengths, int* __restrict__ clamped, u32 batch, u32 keys) {
  begin_launch();
  const u32 sequence = block_index<THREADS>() * THREADS + thread_index();
  if (sequence >= batch) return;
  const int length = lengths[sequence];
  clamped[sequence] = length < 0 ? 0 : int(smaller(u32(length), keys));
}
