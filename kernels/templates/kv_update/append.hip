// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out.
#include "common/elementwise.hip"

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif

// Elements before a row of the keys or values; tokens are KV_STRIDE apart, or packed.
GRETA_DEVICE u64 row_start(u32 row, u32 heads, u32 dim) {
  if (KV_STRIDE > 0) return u64(row / heads) * KV_STRIDE + u64(row % heads) * dim;
  return u64(row) * dim;
}

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
    const u64 from = row_start(place.row, heads, dim) + place.col * VEC;
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
