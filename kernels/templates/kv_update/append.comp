#version 460
// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out. With PAGE
// so many slots are on a page, which has those of all heads, and `table` lists the pages. With
// OTHER_VALUES the heads of values have v_dim elements.

#include "common/elementwise.glsl"

#if !defined(OTHER_VALUES)
#error "OTHER_VALUES must be defined, 0 where values are as long as keys"
#endif
#if !defined(PAGE)
#error "PAGE must be defined, 0 where slots of a head lie one after the other"
#endif

layout(push_constant, std430) uniform Arguments {
  uint64_t k, v, position;
#if PAGE
  uint64_t table;
#endif
  uint64_t k_cache, v_cache;
  uint tokens, heads, dim, capacity;
#if OTHER_VALUES
  uint v_dim;
#define V_DIM args.v_dim
#else
#define V_DIM args.dim
#endif
} args;

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif

// Elements before a row of keys or values of `dim` elements; tokens are KV_STRIDE apart, or packed.
uint64_t row_start(uint row, uint dim) {
#if KV_STRIDE
  return uint64_t(row / args.heads) * KV_STRIDE + uint64_t(row % args.heads) * dim;
#else
  return uint64_t(row) * dim;
#endif
}

void main() {
  const uint width = max(args.dim, V_DIM) / VEC, rows = args.tokens * args.heads;
  const Place start = tile_start(width, THREADS * ITEMS);
  X_RAW keys[ITEMS], values[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    const uint col = place.col * VEC;
    keys[i] = values[i] = X_RAW(0);
    if (place.row < rows && (OTHER_VALUES == 0 || col < args.dim))
      keys[i] = load_vector(args.k + (row_start(place.row, args.dim) + col) * IN_BYTES);
    if (place.row < rows && (OTHER_VALUES == 0 || col < V_DIM))
      values[i] = load_vector(args.v + (row_start(place.row, V_DIM) + col) * IN_BYTES);
  }
  const uint first = uint(I32(args.position).v);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    const uint slot = first + place.row / args.heads;
    if (place.row >= rows || slot >= args.capacity) continue;
    const uint head = place.row % args.heads;
#if PAGE
    const uint64_t page = uint64_t(I32(args.table + uint64_t(slot / PAGE) * 4).v);
    const uint64_t row = (page * args.heads + head) * PAGE + slot % PAGE;
#else
    const uint64_t row = uint64_t(head) * args.capacity + slot;
#endif
    const uint col = place.col * VEC;
    if (OTHER_VALUES == 0 || col < args.dim)
      store_converted(args.k_cache + (row * args.dim + col) * OUT_BYTES, keys[i]);
    if (OTHER_VALUES == 0 || col < V_DIM)
      store_converted(args.v_cache + (row * V_DIM + col) * OUT_BYTES, values[i]);
  }
}
