#include "kernels/reference/gemm_error.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/reference/roundoff.hpp"

namespace greta::kernels {
namespace {

using reference::slack;
using reference::u;

constexpr double smallest = 0x1p-126;

}  // namespace

double dot_product_error(std::int64_t length) {
  const auto n = static_cast<double>(length);
  return u * std::min(n + 2, 8.0) * std::sqrt(n);
}

double norm_factor_error(std::int64_t length) {
  const auto n = static_cast<double>(length);
  return 0.5 * std::min(n, 128 + std::max(64.0, n / 64) + 96) * u + 7.5 * u;
}

GemmErrorModel::GemmErrorModel(const Problem& problem) : out_(problem.out_dtype) {
  const std::string epilogue = problem.attribute("epilogue", "none");
  const auto contains = [&](const char* word) { return epilogue.find(word) != std::string::npos; };
  bias_ = contains("bias");
  residual_ = contains("residual");
  gated_ = contains("swiglu") || contains("geglu");
  if (contains("silu") || contains("swiglu")) activation_ = ActivationFunction::silu;
  if (contains("gelu") || contains("geglu")) activation_ = ActivationFunction::gelu_tanh;
  norm_ = problem.attribute("prologue", "none") == "rmsnorm";
  // The factors are f32 numbers.
  alpha_ = std::strtof(problem.attribute("alpha", "1").c_str(), nullptr);
  beta_ = std::strtof(problem.attribute("beta", "0").c_str(), nullptr);
  length_ = static_cast<double>(problem.dim("k"));
  gamma_ = dot_product_error(problem.dim("k"));
  if (norm_) factor_error_ = norm_factor_error(problem.dim("k"));
  roundings_ = (alpha_ != 1) + bias_ + residual_ + 2 * (beta_ != 0);
}

double GemmErrorModel::product_factor() const {
  return slack * std::abs(alpha_) * gamma_;
}

double GemmErrorModel::value_factor() const {
  return slack * (roundings_ * u + unit_roundoff(out_));
}

double GemmErrorModel::least() const {
  return flushed({}) + underflow_error(out_);
}

double GemmErrorModel::flushed(const GemmTerms& terms) const {
  return std::abs(alpha_) * terms.factor * (2 * length_ + terms.size) * smallest + further_least_;
}

GemmErrorModel::Sum GemmErrorModel::sum(const GemmTerms& terms) const {
  const double scaled = alpha_ * terms.product, kept = beta_ * terms.old;
  const double sizes =
      std::abs(scaled) + std::abs(terms.bias) + std::abs(terms.residual) + std::abs(kept);
  const double relative = roundings_ * u * sizes + factor_error_ * std::abs(scaled);
  return {scaled + terms.bias + terms.residual + kept,
          product_factor() * terms.norm + slack * relative};
}

Expected GemmErrorModel::expect(const GemmTerms& terms) const {
  const auto [x, of_sum] = sum(terms);
  double error = of_sum;
  if (activation_)
    error = activation_change(*activation_, x, error) + activation_error(*activation_, x);
  const double value = activation_ ? activate(*activation_, x) : x;
  if (!std::isfinite(value)) return {value, 0};  // as IEEE 754 has it
  error += unit_roundoff(out_) * (std::abs(value) + error);
  return {value, error + flushed(terms) + underflow_error(out_)};
}

Expected GemmErrorModel::expect(const GemmTerms& gate, const GemmTerms& up) const {
  const auto [x, of_x] = sum(gate);
  const auto [y, of_y] = sum(up);
  const double gated = activate(*activation_, x), value = gated * y;
  const double e = activation_change(*activation_, x, of_x + flushed(gate)) +
                   activation_error(*activation_, x) + smallest;
  if (std::isinf(y) && std::abs(gated) <= e) return reference::anything;
  if (!std::isfinite(value)) return {value, 0};  // as IEEE 754 has it
  const double f = of_y + flushed(up) + smallest;
  double error = std::abs(y) * e + std::abs(gated) * f + e * f + u * std::abs(value);
  error += unit_roundoff(out_) * (std::abs(value) + error) + underflow_error(out_);
  return {value, slack * error};
}

}  // namespace greta::kernels
