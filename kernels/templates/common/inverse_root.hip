// The inverse root of norms.
#pragma once

#include "common/device.hip"

// 1 / sqrt(x), within two units in the last place; x is normal.
GRETA_DEVICE float fast_inverse_sqrt(float x) {
#if defined(GRETA_AMD)
  return __builtin_amdgcn_rsqf(x);
#elif defined(GRETA_NVIDIA)
  float result;
  asm("rsqrt.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / __builtin_sqrtf(x);
#endif
}
