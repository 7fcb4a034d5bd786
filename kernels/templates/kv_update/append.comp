#version 460
// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out. With PAGE
// so many slots are on a page, which has those of all heads, and `table` lists the pages. Heads
// of keys have DIM elements, those of values V_DIM.

#include "common/elementwise.glsl"

#if !defined(KV_HEADS) || !defined(DIM) || !defined(V_DIM)
#error "KV_HEADS DIM and V_DIM must be defined"
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
  uint tokens, capacity;
} args;

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif

// Elements before a row of keys or values of `dim` elements; tokens are KV_STRIDE apart, or packed.
uint64_t row_start(uint row, uint dim) {
#if KV_STRIDE
  return uint64_t(row / KV_HEADS) * KV_STRIDE + uint64_t(row % KV_HEADS) * dim;
#else
  return uint64_t(row) * dim;
#endif
}

void main() {
  const uint width = max(DIM, V_DIM) / VEC, rows = args.tokens * KV_HEADS;
  const Place start = tile_start(width, THREADS * ITEMS);
  X_RAW keys[ITEMS], values[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    const uint col = place.col * VEC;
    keys[i] = values[i] = X_RAW(0);
    if (place.row < rows && (V_DIM <= DIM || col < DIM))
      keys[i] = load_vector(args.k + (row_start(place.row, DIM) + col) * IN_BYTES);
    if (place.row < rows && (DIM <= V_DIM || col < V_DIM))
      values[i] = load_vector(args.v + (row_start(place.row, V_DIM) + col) * IN_BYTES);
  }
  const uint first = uint(I32(args.position).v);
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    const uint slot = first + place.row / KV_HEADS;
    if (place.row >= rows || slot >= args.capacity) continue;
    const uint head = place.row % KV_HEADS;
#if PAGE
    const uint64_t page = uint64_t(I32(args.table + uint64_t(slot / PAGE) * 4).v);
    const uint64_t row = (page * KV_HEADS + head) * PAGE + slot % PAGE;
#else
    const uint64_t row = uint64_t(head) * args.capacity + slot;
#endif
    const uint col = place.col * VEC;
    if (V_DIM <= DIM || col < DIM)
      store_converted(args.k_cache + (row * DIM + col) * OUT_BYTES, keys[i]);
    if (DIM <= V_DIM || col < V_DIM)
      store_converted(args.v_cache + (row * V_DIM + col) * OUT_BYTES, values[i]);
  }
}
