#version 460
// Joins the partial results of attention over parts of the keys: out is the sum of the parts' outputs,
// each times 2 to the power of its log-sum-exp less the greatest one, divided by the sum of these
// powers. A thread takes VEC neighbours of a head, of ITEMS parts at a time. A part whose log-sum-exp
// is minus infinity has seen no key, and is not used. With LSE the log-sum-exps of all keys are stored.
#if !defined(LSE)
#error "LSE must be defined"
#endif

#include "common/elementwise.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t outs, lses, result;
#if LSE
  uint64_t lse;
#endif
  uint parts, rows, dim;
} args;

// Bits, as drivers may assume that there are no infinities and no NaN.
#define NONE 0xff800000u

uint lse_bits(uint part, uint row) {
  return floatBitsToUint(F32(args.lses + (uint64_t(part) * args.rows + row) * 4).v);
}
bool is_nan(uint bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

float weight(uint bits, float greatest) {
  return bits == NONE ? 0.0 : exp2((uintBitsToFloat(bits) - greatest) * 1.4426950408889634);
}

// `row` is a head of a token, of which each part has `rows`.
void main() {
  const uint width = args.dim / VEC;
  const Place place = advance(tile_start(width, THREADS), gl_LocalInvocationIndex, width);
  if (place.row >= args.rows) return;

  uint most = NONE;
  [[dont_unroll]] for (uint p = 0; p < args.parts; ++p) {
    const uint bits = lse_bits(p, place.row);
    const bool more = most == NONE || uintBitsToFloat(bits) > uintBitsToFloat(most);
    if (is_nan(bits) || (!is_nan(most) && more)) most = bits;
  }
  const float greatest = uintBitsToFloat(most);
  float sum = 0.0;
  [[dont_unroll]] for (uint p = 0; p < args.parts; ++p)
    sum += weight(lse_bits(p, place.row), greatest);
  const float factor = sum == 0.0 ? 0.0 : 1.0 / sum;

  float y[VEC];
  [[unroll]] for (uint j = 0; j < VEC; ++j) y[j] = 0.0;
  [[dont_unroll]] for (uint first = 0; first < args.parts; first += ITEMS) {
    X_RAW raw[ITEMS];
    float weights[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      const uint part = min(first + i, args.parts - 1);  // the last one instead of those past it
      const uint64_t from = (uint64_t(part) * args.rows + place.row) * args.dim + place.col * VEC;
      raw[i] = load_vector(args.outs + from * IN_BYTES);
      weights[i] = 0.0;
      if (first + i < args.parts)
        weights[i] = weight(lse_bits(part, place.row), greatest) * factor;
    }
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      float x[VEC];
      unpack(raw[i], x);
      [[unroll]] for (uint j = 0; j < VEC; ++j) {
        if (weights[i] != 0.0) y[j] = fma(weights[i], x[j], y[j]);
      }
    }
  }
  store_floats(args.result + (uint64_t(place.row) * args.dim + place.col * VEC) * OUT_BYTES, y);
#if LSE
  if (place.col == 0) {
    float lse = greatest + log2(sum) * 0.69314718055994531;
    if (sum == 0.0) lse = uintBitsToFloat(NONE);
    F32(args.lse + uint64_t(place.row) * 4).v = lse;
  }
#endif
}
