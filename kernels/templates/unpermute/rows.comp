#version 460
// out is the weighted sum of the rows of y that are at a token's places; a place that y does not have
// adds nothing. A thread takes VEC neighbours of a token, of ITEMS rows at a time.

#if !defined(DIM)
#error "DIM must be defined"
#endif

#include "common/elementwise.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t y, places, weights, out_;
  uint tokens, rows, top_k;
} args;

void main() {
  const uint width = DIM / VEC;
  const Place at = advance(tile_start(width, THREADS), gl_LocalInvocationIndex, width);
  if (at.row >= args.tokens) return;
  const uint64_t first = uint64_t(at.row) * args.top_k;
  float sum[VEC];
  [[unroll]] for (uint j = 0; j < VEC; ++j) sum[j] = 0.0;
  [[dont_unroll]] for (uint k = 0; k < args.top_k; k += ITEMS) {
    X_RAW raw[ITEMS];
    float weight[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      raw[i] = X_RAW(0);
      weight[i] = 0.0;
      uint row = args.rows;
      if (k + i < args.top_k) row = uint(I32(args.places + (first + k + i) * 4).v);
      if (row < args.rows) {
        const uint64_t from = uint64_t(row) * DIM + at.col * VEC;
        raw[i] = load_vector(args.y + from * IN_BYTES);
        weight[i] = F32(args.weights + (first + k + i) * 4).v;
      }
    }
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      float x[VEC];
      unpack(raw[i], x);
      [[unroll]] for (uint j = 0; j < VEC; ++j) sum[j] = fma(weight[i], x[j], sum[j]);
    }
  }
  store_floats(args.out_ + (uint64_t(at.row) * DIM + at.col * VEC) * OUT_BYTES, sum);
}
