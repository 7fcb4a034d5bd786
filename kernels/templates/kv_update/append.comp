#version 460
// Appends the keys and values of new tokens to their caches: those of a token and head, a row here,
// go to the head's slot `position` + token. Tokens for which there is no slot are left out. With PAGE
// so many slots are on a page, which has those of all heads, and `table` lists the pages.

#include "common/elementwise.glsl"

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
} args;

#if !defined(KV_STRIDE)
#error "KV_STRIDE must be defined, 0 where tokens are packed"
#endif

// Elements before a row of the keys or values; tokens are KV_STRIDE apart, or packed.
uint64_t row_start(uint row) {
#if KV_STRIDE
  return uint64_t(row / args.heads) * KV_STRIDE + uint64_t(row % args.heads) * args.dim;
#else
  return uint64_t(row) * args.dim;
#endif
}

void main() {
  const uint width = args.dim / VEC, rows = args.tokens * args.heads;
  const Place start = tile_start(width, THREADS * ITEMS);
  X_RAW keys[ITEMS], values[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const Place place = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    const uint64_t from = (row_start(place.row) + place.col * VEC) * IN_BYTES;
    keys[i] = values[i] = X_RAW(0);
    if (place.row < rows) {
      keys[i] = load_vector(args.k + from);
      values[i] = load_vector(args.v + from);
    }
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
    const uint64_t to = (row * args.dim + place.col * VEC) * OUT_BYTES;
    store_converted(args.k_cache + to, keys[i]);
    store_converted(args.v_cache + to, values[i]);
  }
}
