#version 460
// Joins the partial results of attention over parts of the keys: out is the average of the parts' outputs,
// each of which weighs e to the power of its log-sum-exp less the greatest one. A thread takes VEC
// neighbours of a head, of ITEMS parts at a time, and keeps half the average of the parts so far: so nothing
// overflows, and log-sum-exps are read once. A part whose log-sum-exp is minus infinity has seen no key,
// and is not used, nor is one whose weight becomes 0, whatever its outputs are. With LSE the log-sum-exps of all keys are stored.
#if !defined(DIM) || !defined(LSE)
#error "DIM and LSE must be defined"
#endif

#include "common/elementwise.glsl"

layout(push_constant, std430) uniform Arguments {
  uint64_t outs, lses, result;
#if LSE
  uint64_t lse;
#endif
  uint parts, rows;
} args;

// Bits, as drivers may assume that there are no infinities and no NaN.
#define NONE 0xff800000u

bool is_nan(uint bits) { return (bits & 0x7fffffffu) > 0x7f800000u; }

uint greater(uint most, uint bits) {
  const bool more = most == NONE || uintBitsToFloat(bits) > uintBitsToFloat(most);
  return is_nan(bits) || (!is_nan(most) && more) ? bits : most;
}

float weight(uint bits, float greatest) {
  return bits == NONE ? 0.0 : exp2((uintBitsToFloat(bits) - greatest) * 1.4426950408889634);
}

// `row` is a head of a token, of which each part has `rows`.
void main() {
  const uint width = DIM / VEC;
  const Place place = advance(tile_start(width, THREADS), gl_LocalInvocationIndex, width);
  if (place.row >= args.rows) return;
  const uint64_t at = uint64_t(place.row) * DIM + place.col * VEC;

  // y is half the average of the parts so far, whose weights add up to `sum`.
  uint most = NONE;
  float sum = 0.0, y[VEC];
  [[unroll]] for (uint j = 0; j < VEC; ++j) y[j] = 0.0;
  [[dont_unroll]] for (uint first = 0; first < args.parts; first += ITEMS) {
    uint bits[ITEMS];
    X_RAW raw[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      bits[i] = NONE;
      raw[i] = X_RAW(0);
      if (first + i < args.parts) {
        const uint64_t row = uint64_t(first + i) * args.rows;
        bits[i] = floatBitsToUint(F32(args.lses + (row + place.row) * 4).v);
        raw[i] = load_vector(args.outs + (row * DIM + at) * IN_BYTES);
      }
    }
    const uint before = most;
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) most = greater(most, bits[i]);
    const float greatest = uintBitsToFloat(most);
    float kept = sum * weight(before, greatest), weights[ITEMS];
    sum = kept;
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      weights[i] = weight(bits[i], greatest);
      sum += weights[i];
    }
    const float factor = sum == 0.0 ? 0.0 : 0.5 / sum;
    kept *= 2.0 * factor;
    [[unroll]] for (uint j = 0; j < VEC; ++j) y[j] = kept == 0.0 ? 0.0 : y[j] * kept;
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
      const float of_part = weights[i] * factor;
      float x[VEC];
      unpack(raw[i], x);
      [[unroll]] for (uint j = 0; j < VEC; ++j) {
        if (of_part != 0.0) y[j] = fma(of_part, x[j], y[j]);
      }
    }
  }
  [[unroll]] for (uint j = 0; j < VEC; ++j) y[j] *= 2.0;
  store_floats(args.result + at * OUT_BYTES, y);
#if LSE
  if (place.col == 0) {
    float lse = uintBitsToFloat(most) + log2(sum) * 0.69314718055994531;
    if (sum == 0.0) lse = uintBitsToFloat(NONE);
    F32(args.lse + uint64_t(place.row) * 4).v = lse;
  }
#endif
}
