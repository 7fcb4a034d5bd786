#include "kernels/reference/activation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using reference::u;

constexpr double sqrt_half = 0.70710678118654752440;

/// Returns the relative error of e^x in f32 for an exact x.
double exp_error(double x) {
  return (3 + 2 * std::abs(x)) * 2 * u;
}

/// Returns t of x / (1 + e^-t).
double gate_argument(ActivationFunction function, double x) {
  if (function == ActivationFunction::silu) return x;
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  return 2 * sqrt_2_over_pi * (x + 0.044715 * x * x * x);
}

/// Returns the relative error of silu or gelu_tanh.
double gate_error(ActivationFunction function, double x) {
  const double t = gate_argument(function, x);
  const double weight = 1 / (1 + std::exp(t));
  const double in_t = function == ActivationFunction::silu ? 0 : 7 * u * std::abs(t);
  return weight * (exp_error(t) + in_t) + 6 * u;
}

/// Returns the absolute error of gelu_erf.
double erf_error(double x) {
  const double h = std::erfc(std::abs(x) * sqrt_half) / 2;
  const double p = x * x / 2 + 1.3;  // at least |p|
  const double in_h = 1.2e-7 + (6 + 12 + 8 + 1.5 * x * x + 3) * u + exp_error(p);
  return std::abs(x) * (h * in_h + (x < 0 ? h : 1) * 2 * u);
}

}  // namespace

double activate(ActivationFunction function, double x) {
  if (x == -std::numeric_limits<double>::infinity()) return 0;
  if (function == ActivationFunction::gelu_erf) return x / 2 * std::erfc(-x * sqrt_half);
  return x / (1 + std::exp(-gate_argument(function, x)));
}

double activation_error(ActivationFunction function, double x) {
  if (std::isinf(x)) return x < 0 ? 0x1p-106 : 0;
  const double vanished = std::abs(x) * 0x1p-115;
  if (function == ActivationFunction::gelu_erf) return erf_error(x) + vanished;
  return std::abs(activate(function, x)) * gate_error(function, x) + vanished;
}

double activation_change(ActivationFunction function, double x, double error) {
  const double most = 1.13 * error;
  if (!(x + error < -2)) return most;
  const double value = activate(function, x);
  const double higher = std::abs(activate(function, x + error) - value);
  const double lower = std::abs(activate(function, x - error) - value);
  return std::min(most, std::max(higher, lower));
}

}  // namespace greta::kernels
