#version 460
// The columns of a matrix that the ids name; an id that it does not have gives a column of NaN.

#if !defined(COLS)
#error "COLS must be defined"
#endif

#include "common/elementwise.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t ids, x, out_;
  uint rows, width;
} args;

void main() {
  const uint vectors = COLS / VEC;
  const Place start = tile_start(vectors, THREADS * ITEMS);
  Place place[ITEMS];
  uint id[ITEMS][VEC];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    place[i] = advance(start, i * THREADS + gl_LocalInvocationIndex, vectors);
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      id[i][j] = 0;
      if (place[i].row < args.rows)
        id[i][j] = uint(I32(args.ids + uint64_t(place[i].col * VEC + j) * 4).v);
    }
  }
  float value[ITEMS][VEC];
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint64_t from = uint64_t(place[i].row) * args.width;
    [[unroll]] for (uint j = 0; j < VEC; ++j) {
      value[i][j] = uintBitsToFloat(0x7fc00000u);
      if (place[i].row < args.rows && id[i][j] < args.width)
        value[i][j] = load_in(args.x + (from + id[i][j]) * IN_BYTES);
    }
  }
  [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
    const uint64_t to = uint64_t(place[i].row) * COLS + place[i].col * VEC;
    if (place[i].row < args.rows) store_floats(args.out_ + to * OUT_BYTES, value[i]);
  }
}
