// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out. With PAGE
// so many slots are on a page, which has those of all heads, and `table` lists the pages. Heads
// of keys have DIM elements, those of values V_DIM.
#include "common/elementwise.hip"

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif
#if !defined(KV_HEADS) || !defined(DIM) || !defined(V_DIM)
#error "KV_HEADS DIM and V_DIM must be defined"
#endif
#if !defined(PAGE)
#error "PAGE must be defined, 0 where slots of a head lie one after the other"
#endif
#if PAGE
#define TABLE_PARAMETER const int *GRETA_READ table,
#else
#define TABLE_PARAMETER
#endif

// Elements before a row of the keys or values; tokens are KV_STRIDE apart, or packed.
GRETA_DEVICE u64 row_start(u32 row, u32 dim) {
  if (KV_STRIDE > 0) return u64(row / KV_HEADS) * KV_STRIDE + u64(row % KV_HEADS) * dim;
  return u64(row) * dim;
}

GRETA_KERNEL(THREADS)
kv_update_append(const In* GRETA_READ k, const In* GRETA_READ v, const int* GRETA_READ position,
                 TABLE_PARAMETER Out* __restrict__ k_cache, Out* __restrict__ v_cache, u32 tokens,
                 u32 capacity) {
  begin_launch();
  constexpr u32 width = (DIM > V_DIM ? DIM : V_DIM) / VEC;
  const u32 rows = tokens * KV_HEADS;
  const Place start = tile_start<THREADS * ITEMS>(width);
  Vector keys[ITEMS] = {}, values[ITEMS] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    if (place.row >= rows) continue;
    const u32 col = place.col * VEC;
    if (V_DIM <= DIM || col < DIM) {
      keys[i] = load_vector(k + row_start(place.row, DIM) + col);
    }
    if (DIM <= V_DIM || col < V_DIM) {
      values[i] = load_vector(v + row_start(place.row, V_DIM) + col);
    }
  }
  const u32 first = u32(*position);
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    const u32 slot = first + place.row / KV_HEADS;
    if (place.row >= rows || slot >= capacity) continue;
    const u32 head = place.row % KV_HEADS;
#if PAGE
    const u64 line = (u64(table[slot / PAGE]) * KV_HEADS + head) * PAGE + slot % PAGE;
#else
    const u64 line = u64(head) * capacity + slot;
#endif
    const u32 col = place.col * VEC;
    if (V_DIM <= DIM || col < DIM) store_converted(k_cache + line * DIM + col, keys[i]);
    if (DIM <= V_DIM || col < V_DIM) store_converted(v_cache + line * V_DIM + col, values[i]);
  }
}
