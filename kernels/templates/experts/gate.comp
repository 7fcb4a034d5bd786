#version 460
// The first of two launches: h = silu(gate) * up of each pair of a token and one of its experts, in
// f32. A workgroup has THREADS / GATE_LANES x GATE_TN elements of a pair's h.

#if !defined(GATE_LANES) || !defined(GATE_TN)
#error "GATE_LANES and GATE_TN must be defined"
#endif
#if THREADS % GATE_LANES != 0 || GATE_TN < 1
#error "GATE_LANES divides THREADS; GATE_TN is at least 1"
#endif

#include "common/in_out.glsl"
#include "common/activation.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t x, ids, weights, gate_up, scales, zeros, h;
  uint pairs, experts, top_k, dim, hidden;
} args;

#if QUANTIZED || SCALED && VEC > 8
#define STEP 8
#else
#define STEP VEC
#endif

void load_vector(uint64_t vector, uint at, out float x[STEP]) {
  const uint64_t first = vector + uint64_t(at) * IN_BYTES;
#if !QUANTIZED && !SCALED
  unpack(W_RAW(W_PACK(first).v), x);
#elif STEP == 4 && (IN_F16 || IN_BF16)
  unpack(U32x2(first).v, x);
#elif STEP == 4
  unpack(F32x4(first).v, x);
#elif IN_F16 || IN_BF16
  unpack(U32x4(first).v, x);
#else
  const vec4 low = F32x4(first).v, high = F32x4(first + 16).v;
  x = float[8](low.x, low.y, low.z, low.w, high.x, high.y, high.z, high.w);
#endif
}

#define LANES GATE_LANES
#define LINES (2 * GATE_TN)
#include "experts/columns.glsl"

void main() {
  // Neighbours have the same elements of different pairs, so that caches serve an expert's lines to
  // all of its tokens.
  const uint pair = workgroup() % args.pairs, tile = workgroup() / args.pairs;
  if (tile * (THREADS / LANES * GATE_TN) >= args.hidden) return;  // the whole workgroup, as below
  const uint expert = uint(Id(args.ids + uint64_t(pair) * 4).v);
  if (!takes_part(expert, args.experts, F32(args.weights + uint64_t(pair) * 4).v)) return;
  const uint lane = thread_index() % LANES;
  const uint first = (tile * (THREADS / LANES) + thread_index() / LANES) * GATE_TN;
  [[unroll]] for (uint t = 0; t < GATE_TN; ++t) {
    // Threads past the last element repeat it.
    line[t] = expert * 2 * args.hidden + min(first + t, args.hidden - 1);
    line[GATE_TN + t] = line[t] + args.hidden;
  }
  [[unroll]] for (uint i = 0; i < LINES; ++i) sum[i] = 0.0;
  const uint64_t x = args.x + uint64_t(pair / args.top_k) * args.dim * IN_BYTES;
  add_products(args.gate_up, args.scales, args.zeros, x, args.dim, 2 * args.hidden, lane,
               LANES);
  [[unroll]] for (uint t = 0; t < GATE_TN; ++t) {
    const float gate = reduce_threads(sum[t], 0);
    const float up = reduce_threads(sum[GATE_TN + t], 1);
    if (lane == 0 && first + t < args.hidden)
      F32(args.h + (uint64_t(pair) * args.hidden + first + t) * 4).v = silu(gate) * up;
  }
}
