// out[i] = Function::of(inputs[0][i], inputs[1][i] …) for each of `count` elements.
#pragma once

#include "common/elementwise.hip"

// Vectors come first, then the fewer than VEC elements behind them, one to a thread. The inputs may
// have gaps: `gap` elements follow each run of as many; 0: there are none.
template <typename Function, u32 gap = 0, int inputs>
GRETA_DEVICE void map(const In* const (&in)[inputs], Out* out, u64 count) {
  constexpr u32 run = gap / VEC;  // known to compilers, which divide by multiplying
  const u64 vectors = count / VEC;
  const u64 first = u64(block_index<THREADS>()) * (THREADS * ITEMS) + thread_index();
  const Place start = gap > 0 ? tile_start<THREADS * ITEMS>(run) : Place{0, 0};
  Vector vector[ITEMS][inputs] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const u64 at = first + i * THREADS;
    if (at >= vectors) continue;
    u64 from = at * VEC;
    if (gap > 0) from += u64(advance(start, i * THREADS + thread_index(), run).row) * gap;
    GRETA_UNROLL
    for (int k = 0; k < inputs; ++k) vector[i][k] = load_vector(in[k] + from);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    float y[VEC];
    GRETA_UNROLL
    for (int j = 0; j < VEC; ++j) {
      float x[inputs];
      GRETA_UNROLL
      for (int k = 0; k < inputs; ++k) x[k] = element(vector[i][k], j);
      y[j] = Function::of(x);
    }
    const u64 at = first + i * THREADS;
    if (at < vectors) store_floats(out + at * VEC, y);
  }
  if (gap == 0 && VEC > 1 && first < count % VEC) {
    const u64 at = vectors * VEC + first;
    float x[inputs], y[1];
    GRETA_UNROLL
    for (int k = 0; k < inputs; ++k) x[k] = to_float(in[k][at]);
    y[0] = Function::of(x);
    store_floats(out + at, y);
  }
}
