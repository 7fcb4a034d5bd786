#version 460
// The rows of a table that the ids name; an id that it does not have gives a row of NaN.

#if !defined(DIM)
#error "DIM must be defined"
#endif

#include "common/elementwise.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t ids, table, out_;
  uint tokens, vocabulary;
} args;

void main() {
  const uint width = DIM / VEC;
  const Place start = tile_start(width, THREADS * ITEMS);
  Place place[ITEMS];
  uint id[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    place[i] = advance(start, i * THREADS + gl_LocalInvocationIndex, width);
    id[i] = 0;
    if (place[i].row < args.tokens) id[i] = uint(I32(args.ids + uint64_t(place[i].row) * 4).v);
  }
  X_RAW raw[ITEMS];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    raw[i] = X_RAW(0);
    const uint64_t from = uint64_t(id[i]) * DIM + place[i].col * VEC;
    if (place[i].row < args.tokens && id[i] < args.vocabulary)
      raw[i] = load_vector(args.table + from * IN_BYTES);
  }
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    if (place[i].row >= args.tokens) continue;
    const uint64_t to = uint64_t(place[i].row) * DIM + place[i].col * VEC;
    if (id[i] < args.vocabulary) {
      store_converted(args.out_ + to * OUT_BYTES, raw[i]);
    } else {
      store_nan(args.out_ + to * OUT_BYTES);
    }
  }
}
