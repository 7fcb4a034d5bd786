// Slices of K that are added in the launch that computes them, by the last one to arrive.
#pragma once

#include "gemm/operands.hip"

// Counts this slice in; true for the last one, which then sees the others' sums. The barriers order
// the workgroup's sums with its first thread, whose own fences order that thread's count between
// them and what it read of the others'.
GRETA_DEVICE bool last_slice(u32* counter, u32* arrived) {
  release_to_device();
  block_barrier();
  if (thread_index() == 0) {
    release_to_device();
    *arrived = atomic_add(counter, 1);
    acquire_from_device();
  }
  block_barrier();
  acquire_from_device();
  return *arrived == SPLIT - 1;
}

// A slice's sums of four neighbours of one row; `col` is a multiple of 4, and what lies past the
// edge stays as it is.
GRETA_DEVICE void get_partial4(const Arguments& args, u32 slice, u32 row, u32 col,
                               float (&sum)[4]) {
  const float* const first = partial_sum(args, slice, row, col);
#if STORE_VEC == 4
  if (col >= args.n) return;
  const Pack<float, 4> pack = load_pack<4>(first);
  GRETA_UNROLL
  for (int j = 0; j < 4; ++j) sum[j] = element(pack, j);
#else
  GRETA_UNROLL
  for (int j = 0; j < 4; ++j) {
    if (col + j < args.n) sum[j] = first[j];
  }
#endif
}
