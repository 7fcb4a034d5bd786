// Activations. None divides by infinity, and far below zero, where all of them vanish, the argument
// is held where the exponential can still be computed. NaN stays NaN.

// The larger one of a number below zero and x. By bits: drivers may assume that there is no NaN.
float at_least(float least, float x) {
  const uint bits = floatBitsToUint(x);
  return bits > floatBitsToUint(least) && bits <= 0xff800000u ? least : x;
}

// x * sigmoid(t), t >= -87.
float gated(float x, float t) { return x / (1.0 + exp(-t)); }

float silu(float x) {
  x = at_least(-80.0, x);
  return gated(x, x);
}

// x/2 (1 + tanh u) = x sigmoid(2u), u = sqrt(2/pi) (x + 0.044715 x^3).
float gelu_tanh(float x) {
  x = at_least(-9.7, x);
  return gated(x, x * (1.5957691216057308 + 0.07135481627257 * x * x));
}

// x (1 + erf(x / sqrt(2))) / 2 by the complementary error function of z = |x| / sqrt(2), whose
// relative error is below 1.2e-7. Source: Press, Teukolsky, Vetterling, Flannery, "Numerical Recipes
// in C", 2nd edition, section 6.2, erfcc.
float gelu_erf(float x) {
  x = at_least(-12.5, x);
  const float size = abs(x), a = size < 12.5 ? size : 12.5;
  const float t = 1.0 / fma(0.35355339059327, a, 1.0);  // of 1 + z / 2
  float p = 0.17087277;
  p = fma(p, t, -0.82215223);
  p = fma(p, t, 1.48851587);
  p = fma(p, t, -1.13520398);
  p = fma(p, t, 0.27886807);
  p = fma(p, t, -0.18628806);
  p = fma(p, t, 0.09678418);
  p = fma(p, t, 0.37409196);
  p = fma(p, t, 1.00002368);
  p = fma(p, t, -1.26551223);
  const float beyond = 0.5 * t * exp(fma(-0.5 * a, a, p));  // erfc(z) / 2
  return x * (x < 0.0 ? beyond : 1.0 - beyond);
}
