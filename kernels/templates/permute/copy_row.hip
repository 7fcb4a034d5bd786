// Copies rows of tokens to their places, and completes the rows of experts.
#pragma once

#include "permute/places.hip"

// Blocks after those of tokens: with blocks of rows one for each expert, whose rows it fills up.
#define FINISHERS (BLOCK > 1 ? EXPERTS : 1)

// `place`: TOP_K rows of `out`, in shared memory.
GRETA_DEVICE void copy_row(const In* row, const int* place, In* out, u32 dim) {
  const u32 width = dim / VEC;
  GRETA_NO_UNROLL
  for (u32 first = thread_index(); first < width; first += THREADS * ITEMS) {
    Vector vector[ITEMS] = {};
    GRETA_UNROLL
    for (u32 i = 0; i < ITEMS; ++i) {
      if (first + i * THREADS < width) vector[i] = load_vector(row + (first + i * THREADS) * VEC);
    }
    GRETA_NO_UNROLL
    for (u32 k = 0; k < TOP_K; ++k) {
      if (place[k] < 0) continue;
      In* const to = out + u64(u32(place[k])) * dim;
      GRETA_UNROLL
      for (u32 i = 0; i < ITEMS; ++i) {
        if (first + i * THREADS < width) store_pack(to + (first + i * THREADS) * VEC, vector[i]);
      }
    }
  }
}

// `groups`: the row after each expert's last, or with CAPACITY its number of rows.
GRETA_DEVICE void finish(u32 finisher, const u32* count, const u32* start, int* groups, In* out,
                         u32 dim) {
#if BLOCK > 1
  const u32 first = start[finisher] + count[finisher];
  const u32 end = start[finisher] + rows_of(count[finisher]);
  if (thread_index() == 0) groups[finisher] = int(end);
  const u64 vectors = u64(end - first) * (dim / VEC);
  for (u64 i = thread_index(); i < vectors; i += THREADS) {
    store_pack(out + u64(first) * dim + i * VEC, Vector{});
  }
#else
  for (u32 e = thread_index(); e < EXPERTS; e += THREADS) {
    groups[e] = int(CAPACITY > 0 ? smaller(count[e], CAPACITY) : start[e] + count[e]);
  }
#endif
}
