// Elements of the output's type, which are added to sums.
#pragma once

#include "common/in_out.glsl"

float load_out(uint64_t at) {
#if OUT_F16
  return float(F16(at).v);
#elif OUT_BF16
  return float_from_bf16(uvec4(BF16(at).v)).x;
#else
  return F32(at).v;
#endif
}

vec4 load_out4(uint64_t at) {
#if OUT_F16
  return vec4(F16x4(at).v);
#elif OUT_BF16
  return float_from_bf16(uvec4(BF16x4(at).v));
#else
  return F32x4(at).v;
#endif
}
