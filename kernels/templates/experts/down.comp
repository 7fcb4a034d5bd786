#version 460
// The second of two launches: out is the sum over a token's experts of weight * down * h. A workgroup
// has THREADS / DOWN_LANES x DOWN_TN elements of a token; of the DOWN_LANES threads that share some,
// SLOTS parts take different experts.

#if !defined(DOWN_LANES) || !defined(DOWN_TN) || !defined(SLOTS)
#error "DOWN_LANES, DOWN_TN and SLOTS must be defined"
#endif
#if THREADS % DOWN_LANES != 0 || DOWN_LANES % SLOTS != 0 || DOWN_TN < 1
#error "DOWN_LANES divides THREADS, SLOTS divides DOWN_LANES; DOWN_TN is at least 1"
#endif

#include "common/in_out.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t h, ids, weights, down, scales, zeros, out_;
  uint tokens, experts, top_k, dim, hidden;
} args;

#if QUANTIZED || SCALED && VEC > 8
#define STEP 8
#else
#define STEP VEC
#endif

void load_vector(uint64_t vector, uint at, out float x[STEP]) {
  const uint64_t first = vector + uint64_t(at) * 4;
#if STEP >= 4
  [[unroll]] for (uint j = 0; j < STEP; j += 4) {
    const vec4 four = F32x4(first + j * 4).v;
    [[unroll]] for (uint i = 0; i < 4; ++i) x[j + i] = four[i];
  }
#else
  [[unroll]] for (uint j = 0; j < STEP; ++j) x[j] = F32(first + j * 4).v;
#endif
}

#define LANES DOWN_LANES
#define LINES DOWN_TN
#include "experts/columns.glsl"

void main() {
  // Neighbours have the same elements of different tokens, as in gate.comp.
  const uint token = workgroup() % args.tokens, tile = workgroup() / args.tokens;
  if (tile * (THREADS / LANES * DOWN_TN) >= args.dim) return;  // the whole workgroup
  const uint lanes = LANES / SLOTS, lane = thread_index() % LANES;
  const uint first = (tile * (THREADS / LANES) + thread_index() / LANES) * DOWN_TN;
  float total[DOWN_TN];
  [[unroll]] for (uint t = 0; t < DOWN_TN; ++t) total[t] = 0.0;
  [[dont_unroll]] for (uint slot = lane / lanes; slot < args.top_k; slot += SLOTS) {
    const uint pair = token * args.top_k + slot, expert = uint(Id(args.ids + uint64_t(pair) * 4).v);
    const float weight = F32(args.weights + uint64_t(pair) * 4).v;
    if (takes_part(expert, args.experts, weight)) {
      [[unroll]] for (uint t = 0; t < DOWN_TN; ++t) {
        // Threads past the last element repeat it.
        line[t] = expert * args.dim + min(first + t, args.dim - 1);
        sum[t] = 0.0;
      }
      const uint64_t h = args.h + uint64_t(pair) * args.hidden * 4;
      add_products(args.down, args.scales, args.zeros, h, args.hidden, args.dim, lane % lanes,
                   lanes);
      [[unroll]] for (uint t = 0; t < DOWN_TN; ++t) total[t] = fma(weight, sum[t], total[t]);
    }
  }
  [[unroll]] for (uint t = 0; t < DOWN_TN; ++t) {
    const float y = reduce_threads(total[t], t % 2);
    if (lane == 0 && first + t < args.dim)
      store_out(args.out_ + (uint64_t(token) * args.dim + first + t) * OUT_BYTES, y);
  }
}
