// The penalties of tokens that a row's history has, in place.
#pragma once

#include "common/elementwise.glsl"
#include "sample/numbers.glsl"

layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer Count { uint v; };

bool is_finite(float x) { return (floatBitsToUint(x) & 0x7f800000u) != 0x7f800000u; }

// What other threads of the workgroup read after a barrier.
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer SharedF32 { float v; };
layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer SharedF32x2 { vec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer SharedF32x4 { vec4 v; };
#if IN_F16
layout(buffer_reference, std430, buffer_reference_align = 2) coherent buffer SharedF16 { float16_t v; };
#endif
#if IN_BF16
layout(buffer_reference, std430, buffer_reference_align = 2) coherent buffer SharedBF16 { uint16_t v; };
#endif
#if IN_F16 || IN_BF16
layout(buffer_reference, std430, buffer_reference_align = 4) coherent buffer SharedU32 { uint v; };
layout(buffer_reference, std430, buffer_reference_align = 8) coherent buffer SharedU32x2 { uvec2 v; };
layout(buffer_reference, std430, buffer_reference_align = 16) coherent buffer SharedU32x4 { uvec4 v; };
#endif

void store_in(uint64_t at, float x) {
#if IN_F16
  SharedF16(at).v = float16_t(x);
#elif IN_BF16
  SharedBF16(at).v = uint16_t(bf16_from_float(vec4(x)).x);
#else
  SharedF32(at).v = x;
#endif
}

int history(uint64_t tokens, uint i) { return I32(tokens + uint64_t(i) * 4).v; }

// Changes the logits of the tokens from column `first` to `end` of a row. `counts` has a number for each
// logit of the row, which is 0 before and after: the tokens are counted, and whoever takes a token's count
// applies its penalties. All threads; the workgroup's next barrier, after one of memory, shows the logits
// to all of them.
void penalise(uint64_t logits, uint64_t p, uint64_t tokens, uint64_t counts, uint past, uint first, uint end) {
  const float repetition = is_finite(F32(p).v) ? F32(p).v : 1.0;
  const float frequency = is_finite(F32(p + 4).v) ? F32(p + 4).v : 0.0;
  const float presence = is_finite(F32(p + 8).v) ? F32(p + 8).v : 0.0;
  const uint span = end - first;
  for (uint i = gl_LocalInvocationIndex; i < past; i += THREADS) {
    const int token = history(tokens, i);
    if (uint(token) - first < span) atomicAdd(Count(counts + uint64_t(token) * 4).v, 1);
  }
  memoryBarrierBuffer();
  barrier();
  for (uint i = gl_LocalInvocationIndex; i < past; i += THREADS) {
    const int token = history(tokens, i);
    if (uint(token) - first >= span) continue;
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
