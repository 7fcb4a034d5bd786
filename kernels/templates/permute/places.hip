// Where the rows of experts are in the permuted matrix: one expert's after the other's, each expert's
// number of rows rounded up to a multiple of BLOCK; or, with CAPACITY rows for each expert, from the
// expert's first on. The assignments of an expert keep their order.
#pragma once

#if !defined(EXPERTS) || !defined(TOP_K) || !defined(BLOCK) || !defined(CAPACITY)
#error "EXPERTS, TOP_K, BLOCK and CAPACITY must be defined"
#endif
#if EXPERTS < 1 || TOP_K < 1 || TOP_K > 64 || BLOCK < 1 || (CAPACITY > 0 && BLOCK != 1)
#error "TOP_K is at most 64, and experts with a CAPACITY have no blocks"
#endif

#include "common/elementwise.hip"

// In shared memory. Returns the old value; orders nothing else.
GRETA_DEVICE u32 count_up(u32* counter) {
#if defined(GRETA_AMD)
  return __hip_atomic_fetch_add(counter, 1U, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
#else
  return atomic_add(counter, 1);
#endif
}

// Rows that an expert takes up.
GRETA_DEVICE u32 rows_of(u32 count) { return (count + BLOCK - 1) / BLOCK * BLOCK; }

// Each expert's first row, from its number of assignments. `part`: THREADS words.
GRETA_DEVICE void find_starts(const u32* count, u32* start, u32* part) {
  const u32 me = thread_index();
#if CAPACITY > 0
  for (u32 e = me; e < EXPERTS; e += THREADS) start[e] = e * CAPACITY;
  block_barrier();
#else
  constexpr u32 each = (EXPERTS + THREADS - 1) / THREADS;
  u32 sum = 0;
  for (u32 i = 0; i < each; ++i) {
    if (me * each + i < EXPERTS) sum += rows_of(count[me * each + i]);
  }
  part[me] = sum;
  block_barrier();
  GRETA_NO_UNROLL
  for (u32 step = 1; step < THREADS; step *= 2) {
    const u32 before = me >= step ? part[me - step] : 0;
    block_barrier();
    part[me] += before;
    block_barrier();
  }
  u32 at = part[me] - sum;
  for (u32 i = 0; i < each; ++i) {
    const u32 expert = me * each + i;
    if (expert >= EXPERTS) break;
    start[expert] = at;
    at += rows_of(count[expert]);
  }
  block_barrier();
#endif
}

// The row of an expert's assignment with this number; -1 beyond the capacity.
GRETA_DEVICE int place_of(u32 start, u32 rank) {
  return CAPACITY > 0 && rank >= CAPACITY ? -1 : int(start + rank);
}
