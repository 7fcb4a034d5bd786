#version 460
// A workgroup changes the logits of the tokens in its row's history, in place. `counts` has a number
// for each logit, which is 0 before and after: the tokens are counted, and whoever takes a token's
// count applies its penalties.

#if !defined(X_STRIDE)
#error "X_STRIDE must be defined, 0 where rows are packed"
#endif

#include "common/elementwise.glsl"
#include "sample/numbers.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Count { uint v; };

layout(push_constant, std430) uniform Arguments {
  uint64_t x, penalties, history, counts;
  uint rows, cols, past;
} args;

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

void store_in(uint64_t at, float x) {
#if IN_F16
  F16(at).v = float16_t(x);
#elif IN_BF16
  BF16(at).v = uint16_t(bf16_from_float(vec4(x)).x);
#else
  F32(at).v = x;
#endif
}

int history(uint64_t tokens, uint i) { return I32(tokens + uint64_t(i) * 4).v; }

void main() {
  const uint row = workgroup();
  if (row >= args.rows) return;
  const uint64_t logits =
      args.x + uint64_t(row) * (X_STRIDE > 0 ? uint(X_STRIDE) : args.cols) * IN_BYTES;
  const uint64_t tokens = args.history + uint64_t(row) * args.past * 4;
  const uint64_t p = args.penalties + uint64_t(row) * 12;
  const float repetition = is_finite(F32(p).v) ? F32(p).v : 1.0;
  const float frequency = is_finite(F32(p + 4).v) ? F32(p + 4).v : 0.0;
  const float presence = is_finite(F32(p + 8).v) ? F32(p + 8).v : 0.0;
  const uint64_t counts = args.counts + uint64_t(row) * args.cols * 4;
  for (uint i = gl_LocalInvocationIndex; i < args.past; i += THREADS) {
    const int token = history(tokens, i);
    if (uint(token) < args.cols) atomicAdd(Count(counts + uint64_t(token) * 4).v, 1);
  }
  memoryBarrierBuffer();
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < args.past; i += THREADS) {
    const int token = history(tokens, i);
    if (uint(token) >= args.cols) continue;
    const uint count = atomicExchange(Count(counts + uint64_t(token) * 4).v, 0);
    if (count == 0) continue;
    const uint64_t at = logits + uint64_t(token) * IN_BYTES;
    precise float value = load_in(at);
    if (!is_finite(value)) continue;
    const bool normal = (floatBitsToUint(value) & 0x7fffffffu) >= 0x00800000u;
    if (normal && repetition >= 1.17549435e-38)
      value = value > 0.0 ? divide(value, repetition) : value * repetition;
    precise const float often = frequency * float(count);
    value = value - often;
    value = value - presence;
    store_in(at, value);
  }
}
