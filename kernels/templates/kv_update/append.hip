// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out.
#include "common/elementwise.hip"

GRETA_KERNEL(THREADS)
kv_update_append(const In* __restrict__ k, const In* __restrict__ v,
                 const int* __restrict__ position, Out* __restrict__ k_cache,
                 Out* __restrict__ v_cache, u32 tokens, u32 heads, u32 dim, u32 capacity) {
  const u32 width = dim / VEC, rows = tokens * heads;
  const Place start = tile_start<THREADS * ITEMS>(width);
  Vector keys[ITEMS] = {}, values[ITEMS] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    if (place.row >= rows) continue;
    const u64 from = u64(place.row) * dim + place.col * VEC;
    keys[i] = load_vector(k + from);
    values[i] = load_vector(v + from);
  }
  const u32 first = u32(*position);
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    const u32 slot = first + place.row / heads;
    if (place.row >= rows || slot >= capacity) continue;
    const u64 to = (u64(place.row % heads) * capacity + slot) * dim + place.col * VEC;
    store_converted(k_cache + to, keys[i]);
    store_converted(v_cache + to, values[i]);
  }
}
