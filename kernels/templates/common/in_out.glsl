// Elements of an operation's inputs and output in memory, as f32.
#pragma once

#if !defined(IN_F16) || !defined(IN_BF16) || !defined(OUT_F16) || !defined(OUT_BF16)
#error "{IN,OUT}_{F16,BF16} must be defined"
#endif

#include "common/memory.glsl"

#define IN_BYTES (IN_F16 != 0 || IN_BF16 != 0 ? 2 : 4)
#define OUT_BYTES (OUT_F16 != 0 || OUT_BF16 != 0 ? 2 : 4)

float load_in(uint64_t at) {
#if IN_F16
  return float(F16(at).v);
#elif IN_BF16
  return float_from_bf16(uvec4(BF16(at).v)).x;
#else
  return F32(at).v;
#endif
}

void store_out(uint64_t at, float x) {
#if OUT_F16
  F16(at).v = float16_t(x);
#elif OUT_BF16
  BF16(at).v = uint16_t(bf16_from_float(vec4(x)).x);
#else
  F32(at).v = x;
#endif
}

void store_out4(uint64_t at, vec4 x) {
#if OUT_F16
  F16x4(at).v = f16vec4(x);
#elif OUT_BF16
  BF16x4(at).v = u16vec4(bf16_from_float(x));
#else
  F32x4(at).v = x;
#endif
}

// Number of this workgroup in a grid that is folded into two dimensions.
uint workgroup() { return gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x; }
