// What becomes of the sums of gemv's threads with ACROSS=1: threads COLS apart share columns. With SPLIT > 1 the
// workgroup's z picks a slice of K, and the last slice to arrive adds them all, in the order of K whatever the order
// of arrival. A sum's number in a workgroup is (row * SUMS_OF_ROW + t) * COLS + column. As in gemv_sums.hip.
#pragma once

#include "common/thread_index.glsl"
#if SPLIT > 1
#include "common/arrival.glsl"
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Partial { float v; };
#endif

// Threads whose sums meet by exchanges, within a subgroup.
#if SUBGROUP > COLS
#define TOGETHER SUBGROUP
#else
#define TOGETHER COLS
#endif
#define PARTS (THREADS / TOGETHER)
#define SUMS_OF_ROW (TN + NORM)
#define TILE_SUMS (ROWS * SUMS_OF_ROW * COLS)

shared float met[PARTS * TILE_SUMS];

// Leaves a thread's sum number `number` of ROWS x SUMS_OF_ROW where those of its subgroup have met.
void meet_in_subgroup(float total, uint number) {
  const uint thread = thread_index();
#if SUBGROUP > COLS
  [[unroll]] for (uint mask = COLS; mask < SUBGROUP; mask *= 2) total += subgroupShuffleXor(total, mask);
#endif
  if (thread % TOGETHER < COLS) met[thread / TOGETHER * TILE_SUMS + number * COLS + thread % COLS] = total;
}

// All threads, after meet_in_subgroup(): leaves the sums over K of tile `tile` of `tiles` in the first part of `met`;
// false in workgroups whose slices are not the last to arrive.
bool meet(uint tile, uint tiles) {
  barrier();
  for (uint e = gl_LocalInvocationIndex; e < TILE_SUMS; e += THREADS) {
    float total = 0.0;
    [[unroll]] for (uint part = 0; part < PARTS; ++part) total += met[part * TILE_SUMS + e];
#if SPLIT > 1
    Partial(args.partial + ((uint64_t(gl_WorkGroupID.z) * tiles + tile) * TILE_SUMS + e) * 4).v = total;
#else
    met[e] = total;
#endif
  }
#if SPLIT > 1
  if (!last_to_arrive(args.counters + uint64_t(tile) * 4, SPLIT)) return false;
  for (uint e = gl_LocalInvocationIndex; e < TILE_SUMS; e += THREADS) {
    float total = 0.0;
    [[unroll]] for (uint s = 0; s < SPLIT; ++s)
      total += Partial(args.partial + ((uint64_t(s) * tiles + tile) * TILE_SUMS + e) * 4).v;
    met[e] = total;
  }
#endif
  barrier();
  return true;
}
