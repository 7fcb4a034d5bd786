#include "kernels/reference/gemm_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using reference::slack;
using reference::u;

/// Bounds the change of an activation if its argument changes by at most `error`: 1.13 times that.
/// Below -2, where silu and gelu are monotonic, it is at most the larger change at the two ends.
double changed(ActivationFunction function, double x, double error) {
  const double most = 1.13 * error;
  if (!(x + error < -2)) return most;
  const double value = activate(function, x);
  const double higher = std::abs(activate(function, x + error) - value);
  const double lower = std::abs(activate(function, x - error) - value);
  return std::min(most, std::max(higher, lower));
}

}  // namespace

double dot_product_error(std::int64_t length) {
  const auto n = static_cast<double>(length);
  return u * std::min(n + 2, 8.0) * std::sqrt(n);
}

GemmErrorModel::GemmErrorModel(const Problem& problem) : out_(problem.out_dtype) {
  const std::string epilogue = problem.attribute("epilogue", "none");
  const auto contains = [&](const char* word) { return epilogue.find(word) != std::string::npos; };
  bias_ = contains("bias");
  residual_ = contains("residual");
  if (contains("silu")) activation_ = ActivationFunction::silu;
  if (contains("gelu")) activation_ = ActivationFunction::gelu_tanh;
  // The factors are f32 numbers.
  alpha_ = std::strtof(problem.attribute("alpha", "1").c_str(), nullptr);
  beta_ = std::strtof(problem.attribute("beta", "0").c_str(), nullptr);
  gamma_ = dot_product_error(problem.dim("k"));
  flushed_ = std::abs(alpha_) * 2 * static_cast<double>(problem.dim("k")) * 0x1p-126;
  roundings_ = (alpha_ != 1) + bias_ + residual_ + 2 * (beta_ != 0);
}

double GemmErrorModel::product_factor() const {
  return slack * std::abs(alpha_) * gamma_;
}

double GemmErrorModel::value_factor() const {
  return slack * (roundings_ * u + unit_roundoff(out_));
}

double GemmErrorModel::least() const {
  return flushed_ + underflow_error(out_);
}

Expected GemmErrorModel::expect(const GemmTerms& terms) const {
  const double scaled = alpha_ * terms.product, kept = beta_ * terms.old;
  const double x = scaled + terms.bias + terms.residual + kept;
  const double sizes =
      std::abs(scaled) + std::abs(terms.bias) + std::abs(terms.residual) + std::abs(kept);
  double error = product_factor() * terms.norm + slack * roundings_ * u * sizes;
  if (activation_) error = changed(*activation_, x, error) + activation_error(*activation_, x);
  const double value = activation_ ? activate(*activation_, x) : x;
  error += unit_roundoff(out_) * (std::abs(value) + error) + least();
  return {value, error};
}

}  // namespace greta::kernels
