// Reductions over runs of threads of several lengths, all of them powers of two: the sum of f32, or
// the largest of integers. SUBGROUP is the size that subgroups must have; 0: they may have any, and
// shared memory does all.
#pragma once

#include "common/thread_index.glsl"

shared uint run_parts[THREADS];

// Of f32 as bits with `sums`.
uint merged(uint a, uint b, bool sums) {
  return sums ? floatBitsToUint(uintBitsToFloat(a) + uintBitsToFloat(b)) : max(a, b);
}

#if SUBGROUP > 0
// The threads of a run get the same result.
uint reduce_run(uint value, const uint run, const bool sums) {
  [[unroll]] for (uint mask = 1; mask < min(run, SUBGROUP); mask *= 2)
    value = merged(value, subgroupShuffleXor(value, mask), sums);
  if (run <= SUBGROUP) return value;
  const uint waves = run / SUBGROUP, first = thread_index() / run * waves;
  barrier();  // parts may still be read
  if (gl_SubgroupInvocationID == 0) run_parts[gl_SubgroupID] = value;
  barrier();
  value = run_parts[first];
  [[dont_unroll]] for (uint i = 1; i < waves; ++i) value = merged(value, run_parts[first + i], sums);
  return value;
}

#else
uint reduce_run(uint value, const uint run, const bool sums) {
  if (run == 1) return value;
  const uint me = thread_index(), lane = me % run;
  barrier();  // parts may still be read
  run_parts[me] = value;
  [[dont_unroll]] for (uint step = run / 2; step > 0; step /= 2) {
    barrier();
    if (lane < step) {
      value = merged(value, run_parts[me + step], sums);
      run_parts[me] = value;
    }
  }
  barrier();
  return run_parts[me - lane];
}
#endif
