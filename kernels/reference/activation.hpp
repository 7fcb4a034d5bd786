#pragma once

#include "runtime/device/layers.hpp"

namespace greta::kernels {

/// Activations: x times a sigmoid-like factor between 0 and 1.
enum class ActivationFunction {
  silu,       ///< x / (1 + e^-x)
  gelu_tanh,  ///< x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))
  gelu_erf,   ///< x/2 (1 + erf(x / sqrt(2)))
};

/// Returns f(x), and the limit 0 for x = -infinity.
double activate(ActivationFunction function, double x);

/// Returns an error bound of f evaluated in f32 at an exact x. With u = 2^-24 and the precision
/// that Vulkan requires (exp within 3 + 2|x| ulp, division within 2.5 ulp):
/// - silu and gelu_tanh are x / (1 + e^-t). Their relative error is (1 - sigmoid(t)) (e_exp + e_t)
///   + 6u. e_exp is the relative error of exp, e_t is 7u |t| for the roundings in t (silu: 0), and
///   6u covers the addition and the division.
/// - gelu_erf is x (1 - h) or, for negative x, x h, with h = erfc(|x| / sqrt(2)) / 2 computed as
///   t e^p / 2, p = polynomial(t) - x^2 / 2 (erfcc of common/activation.hip). The relative error of
///   h sums 1.2e-7 for the approximation, 6u for t, 12u for the effect of t on p, 8u for the
///   polynomial, 1.5 x^2 u for the rounded square, exp's error at p, and 3u. The last two
///   operations add 2u.
/// For arguments below about -80, f underflows and a kernel may return any value between 0 and
/// x e^-80.
///
/// The bound does not cover devices that flush subnormal f32 numbers to 0. Flushing the result, or
/// an x whose result is below 2^-127, changes the result by less than 2^-126 in total. A caller
/// that stores the result adds this once (rounded()); a caller that multiplies it adds this times
/// the other factor.
double activation_error(ActivationFunction function, double x);

/// Bounds the change of silu or gelu_tanh if the argument changes by at most `error`: 1.13 times
/// that. Below -2, where they are monotonic, it is at most the larger change at the two ends.
double activation_change(ActivationFunction function, double x, double error);

}  // namespace greta::kernels
