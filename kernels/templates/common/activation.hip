// Activations. None divides by infinity, and far below zero, where all of them vanish, the argument
// is held where the exponential can still be computed. NaN stays NaN.
#pragma once

#include "common/device.hip"

// 1 / x, within one unit in the last place; x is normal.
GRETA_DEVICE float fast_reciprocal(float x) {
#if defined(GRETA_AMD)
  return __builtin_amdgcn_rcpf(x);
#elif defined(GRETA_NVIDIA)
  float result;
  asm("rcp.approx.f32 %0, %1;" : "=f"(result) : "f"(x));
  return result;
#else
  return 1.0f / x;
#endif
}

GRETA_DEVICE float at_least(float least, float x) { return x < least ? least : x; }

// x * sigmoid(t), t >= -87.
GRETA_DEVICE float gated(float x, float t) { return x * fast_reciprocal(1.0f + fast_exp(-t)); }

GRETA_DEVICE float silu(float x) {
  x = at_least(-80.0f, x);
  return gated(x, x);
}

// x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
GRETA_DEVICE float gelu_tanh(float x) {
  x = at_least(-9.7f, x);
  return gated(x, x * (1.5957691216057308f + 0.07135481627257f * x * x));
}

// x (1 + erf(x / sqrt(2))) / 2 by the complementary error function of z = |x| / sqrt(2), whose
// relative error is below 1.2e-7. Source: Press, Teukolsky, Vetterling, Flannery, "Numerical Recipes
// in C", 2nd edition, section 6.2, erfcc.
GRETA_DEVICE float gelu_erf(float x) {
  x = at_least(-12.5f, x);
  const float size = x < 0.0f ? -x : x, a = size < 12.5f ? size : 12.5f;
  const float t = fast_reciprocal(multiply_add(0.35355339059327f, a, 1.0f));  // 1 + z / 2
  float p = 0.17087277f;
  p = multiply_add(p, t, -0.82215223f);
  p = multiply_add(p, t, 1.48851587f);
  p = multiply_add(p, t, -1.13520398f);
  p = multiply_add(p, t, 0.27886807f);
  p = multiply_add(p, t, -0.18628806f);
  p = multiply_add(p, t, 0.09678418f);
  p = multiply_add(p, t, 0.37409196f);
  p = multiply_add(p, t, 1.00002368f);
  p = multiply_add(p, t, -1.26551223f);
  const float beyond = 0.5f * t * fast_exp(multiply_add(-0.5f * a, a, p));  // erfc(z) / 2
  return x * (x < 0.0f ? beyond : 1.0f - beyond);
}
