// The rows of a table that the ids name; an id that it does not have gives a row of NaN.
#if !defined(DIM)
#error "DIM must be defined"
#endif

#include "common/elementwise.hip"

GRETA_KERNEL(THREADS)
embedding_gather(const int* GRETA_READ ids, const In* GRETA_READ table, Out* __restrict__ out,
                 u32 tokens, u32 vocabulary) {
  begin_launch();
  constexpr u32 width = DIM / VEC;
  const Place start = tile_start<THREADS * ITEMS>(width);
  Place place[ITEMS];
  u32 id[ITEMS] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    place[i] = advance(start, i * THREADS + thread_index(), width);
    if (place[i].row < tokens) id[i] = u32(ids[place[i].row]);
  }
  Vector vector[ITEMS] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (place[i].row < tokens && id[i] < vocabulary)
      vector[i] = load_vector(table + u64(id[i]) * DIM + place[i].col * VEC);
  }
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    if (place[i].row >= tokens) continue;
    Out* const to = out + u64(place[i].row) * DIM + place[i].col * VEC;
    if (id[i] < vocabulary) {
      store_converted(to, vector[i]);
    } else {
      store_nan(to);
    }
  }
}
