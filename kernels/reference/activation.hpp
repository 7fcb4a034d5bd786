#pragma once

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Functions of one element, x times a sigmoid-like factor between 0 and 1.
enum class ActivationFunction {
  silu,       ///< x / (1 + e^-x)
  gelu_tanh,  ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  gelu_erf,   ///< x/2 (1 + erf(x / sqrt(2)))
};

/// The function itself; where x is -infinity, its limit 0.
double activate(ActivationFunction function, double x);

/// How far a computation in f32 may be off, for an x that is exact. With u = 2^-24 and the
/// precision that Vulkan demands (exp within 3 + 2|x| ulp, a division within 2.5 ulp):
/// - silu and gelu_tanh are x / (1 + e^-t). The exponential is off by the relative error of exp,
///   t itself by up to 7 roundings (silu: none), which weighs 1 - sigmoid(t); addition and division
///   add 6 u.
/// - gelu_erf is x (1 - h) or, for negative x, x h, where h = erfc(|x| / sqrt(2)) / 2 is computed
/// as
///   t e^p: 1.2e-7 for that formula, 6 u for t, twice that for what t does to p, 8 u for the
///   polynomial, 1.5 x^2 u for the rounded square, exp's own error at p, and 3 u.
/// Below an argument of about -80 the function vanishes, and a kernel may give anything between 0
/// and x e^-80.
///
/// Devices may take subnormal numbers of f32 for zeros. That is not in this error: it makes the
/// result 0 where the result is below 2^-126, or where x is, whose result is below 2^-127, so that
/// it is off by less than 2^-126 in all. Whoever stores the result adds that once (rounded()), and
/// whoever multiplies it adds it times the other factor.
double activation_error(ActivationFunction function, double x);

}  // namespace greta::kernels
