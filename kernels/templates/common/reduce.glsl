// Reductions over the threads of a workgroup, in each run of LANES of them, a power of two. Who is
// merged with whom depends on nothing but the threads' numbers, so that equal inputs give equal
// results.
//
// What is merged is a REDUCED, for which there are
//   REDUCED merge(REDUCED a, REDUCED b)             associative but for rounding
//   REDUCED across(REDUCED value, uint mask)        subgroupShuffleXor of its words
// and all threads get the result, where merge is not commutative to the last bit each with its own
// rounding. SUBGROUP is the size that subgroups must have; 0: they may have any, and shared memory
// does all. The workgroup has THREADS, in whole subgroups.
#pragma once

#if !defined(REDUCED) || !defined(LANES)
#error "REDUCED and LANES must be defined"
#endif

#include "common/thread_index.glsl"

#if SUBGROUP > 0
#if LANES > SUBGROUP
#define WAVES (LANES / SUBGROUP)
shared REDUCED wave_parts[2 * (THREADS / SUBGROUP)];
#endif

// `turn`: 0 and 1 alternate where this is called more than once.
REDUCED reduce_threads(REDUCED value, uint turn) {
  [[unroll]] for (uint mask = 1; mask < min(LANES, SUBGROUP); mask *= 2)
    value = merge(value, across(value, mask));
#if LANES > SUBGROUP
  const uint parts = turn * (THREADS / SUBGROUP);
  if (gl_SubgroupInvocationID == 0) wave_parts[parts + gl_SubgroupID] = value;
  barrier();
  const uint first = thread_index() / LANES * WAVES;
#if WAVES <= SUBGROUP
  value = wave_parts[parts + first + gl_SubgroupInvocationID % WAVES];
  [[unroll]] for (uint mask = 1; mask < WAVES; mask *= 2)
    value = merge(value, across(value, mask));
#else  // small subgroups
  value = wave_parts[parts + first];
  [[dont_unroll]] for (uint i = 1; i < WAVES; ++i) value = merge(value, wave_parts[parts + first + i]);
#endif
#endif
  return value;
}

#else
#if LANES > 1
shared REDUCED thread_parts[THREADS];
#endif

REDUCED reduce_threads(REDUCED value, uint turn) {
#if LANES > 1
  const uint me = thread_index(), lane = me % LANES;
  thread_parts[me] = value;
  [[dont_unroll]] for (uint step = LANES / 2; step > 0; step /= 2) {
    barrier();
    if (lane < step) {
      value = merge(value, thread_parts[me + step]);
      thread_parts[me] = value;
    }
  }
  barrier();
  value = thread_parts[me - lane];
  barrier();
#endif
  return value;
}
#endif
