// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out. With PAGE
// so many slots are on a page, which has those of all heads, and `table` lists the pages. With
// OTHER_VALUES the heads of values have v_dim elements.
#include "common/elementwise.hip"

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif
#if !defined(OTHER_VALUES)
#error "OTHER_VALUES must be defined, 0 where values are as long as keys"
#endif
#if !defined(PAGE)
#error "PAGE must be defined, 0 where slots of a head lie one after the other"
#endif
#if PAGE
#define TABLE_PARAMETER const int *GRETA_READ table,
#else
#define TABLE_PARAMETER
#endif
#if OTHER_VALUES
#define V_DIM_PARAMETER , u32 v_dim
#else
#define V_DIM_PARAMETER
#endif

// Elements before a row of the keys or values; tokens are KV_STRIDE apart, or packed.
GRETA_DEVICE u64 row_start(u32 row, u32 heads, u32 dim) {
  if (KV_STRIDE > 0) return u64(row / heads) * KV_STRIDE + u64(row % heads) * dim;
  return u64(row) * dim;
}

GRETA_KERNEL(THREADS)
kv_update_append(const In* GRETA_READ k, const In* GRETA_READ v, const int* GRETA_READ position,
                 TABLE_PARAMETER Out* __restrict__ k_cache, Out* __restrict__ v_cache, u32 tokens,
                 u32 heads, u32 dim, u32 capacity V_DIM_PARAMETER) {
  begin_launch();
#if !OTHER_VALUES
  const u32 v_dim = dim;
#endif
  const u32 width = (dim > v_dim ? dim : v_dim) / VEC, rows = tokens * heads;
  const Place start = tile_start<THREADS * ITEMS>(width);
  Vector keys[ITEMS] = {}, values[ITEMS] = {};
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    if (place.row >= rows) continue;
    const u32 col = place.col * VEC;
    if (!OTHER_VALUES || col < dim) {
      keys[i] = load_vector(k + row_start(place.row, heads, dim) + col);
    }
    if (!OTHER_VALUES || col < v_dim) {
      values[i] = load_vector(v + row_start(place.row, heads, v_dim) + col);
    }
  }
  const u32 first = u32(*position);
  GRETA_UNROLL
  for (u32 i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + thread_index(), width);
    const u32 slot = first + place.row / heads;
    if (place.row >= rows || slot >= capacity) continue;
    const u32 head = place.row % heads;
#if PAGE
    const u64 line = (u64(table[slot / PAGE]) * heads + head) * PAGE + slot % PAGE;
#else
    const u64 line = u64(head) * capacity + slot;
#endif
    const u32 col = place.col * VEC;
    if (!OTHER_VALUES || col < dim) store_converted(k_cache + line * dim + col, keys[i]);
    if (!OTHER_VALUES || col < v_dim) store_converted(v_cache + line * v_dim + col, values[i]);
  }
}
