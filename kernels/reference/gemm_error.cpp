#include "kernels/reference/gemm_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace greta {
namespace {

constexpr double u = 0x1p-24;

/// Second-order terms of the bounds.
constexpr double slack = 1.001;

}  // namespace

GemmErrorModel::GemmErrorModel(const Problem& problem) : out_(problem.out_dtype) {
  const std::string epilogue = problem.attribute("epilogue", "none");
  const auto contains = [&](const char* word) { return epilogue.find(word) != std::string::npos; };
  bias_ = contains("bias");
  residual_ = contains("residual");
  if (contains("silu")) activation_ = Activation::silu;
  if (contains("gelu")) activation_ = Activation::gelu;
  // The factors are f32 numbers.
  alpha_ = std::strtof(problem.attribute("alpha", "1").c_str(), nullptr);
  beta_ = std::strtof(problem.attribute("beta", "0").c_str(), nullptr);
  const auto k = static_cast<double>(problem.dim("k"));
  gamma_ = u * std::min(k + 2, 8.0) * std::sqrt(k);
  roundings_ = (alpha_ != 1) + bias_ + residual_ + 2 * (beta_ != 0);
}

double GemmErrorModel::product_factor() const {
  return slack * std::abs(alpha_) * gamma_;
}

double GemmErrorModel::value_factor() const {
  return slack * (roundings_ * u + unit_roundoff(out_));
}

double GemmErrorModel::least() const {
  return out_ == DType::f16 ? 0x1p-25 : smallest_normal(out_);
}

Expected GemmErrorModel::expect(const GemmTerms& terms) const {
  const double scaled = alpha_ * terms.product, kept = beta_ * terms.old;
  const double x = scaled + terms.bias + terms.residual + kept;
  const double sizes =
      std::abs(scaled) + std::abs(terms.bias) + std::abs(terms.residual) + std::abs(kept);
  double error = product_factor() * terms.norm + slack * roundings_ * u * sizes;
  if (!linear()) error = 1.13 * error + activation_error(x);
  const double value = activate(x);
  error += unit_roundoff(out_) * (std::abs(value) + error) + least();
  return {value, error};
}

/// Both activations are x / (1 + e^-t).
double GemmErrorModel::gate_argument(double x) const {
  if (activation_ == Activation::silu) return x;
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  return 2 * sqrt_2_over_pi * (x + 0.044715 * x * x * x);
}

double GemmErrorModel::activate(double x) const {
  if (activation_ == Activation::none) return x;
  if (activation_ == Activation::silu) return x / (1 + std::exp(-x));
  return x / 2 * (1 + std::tanh(gate_argument(x) / 2));
}

/// Of computing x / (1 + e^-t) in f32 as Vulkan demands it: exp within 3 + 2|t| ulp, a division
/// within 2.5 ulp, the addition within half of one; t itself takes up to 7 roundings. An error of
/// the exponential weighs 1 - sigmoid(t). Below t = -80 a device may give 0 or an x e^-80.
double GemmErrorModel::activation_error(double x) const {
  const double t = gate_argument(x);
  const double weight = 1 / (1 + std::exp(t));
  const double in_exponential = (3 + 2 * std::abs(t)) * 2 * u + 7 * u * std::abs(t);
  const double relative = weight * in_exponential + 6 * u;
  return std::abs(activate(x)) * relative + std::abs(x) * 0x1p-115;
}

}  // namespace greta
