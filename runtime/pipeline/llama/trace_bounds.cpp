#include "runtime/pipeline/llama/trace_bounds.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "kernels/reference/rows.hpp"
#include "runtime/pipeline/llama/expert_stages.hpp"

namespace greta::runtime {
namespace {

constexpr double u = 0x1p-24;
constexpr double slack = 1.001;  ///< second-order terms
constexpr double smallest = 0x1p-126;

/// Returns the error of a product before it is rounded.
double product_error(std::int64_t length, const TracedProduct& p) {
  const double size = std::abs(p.value);
  return slack * (dot_product_error(length) * (p.norm + size) + p.relative * size) + p.absolute +
         smallest;
}

}  // namespace

double TraceBounds::norm_of_factors(std::int64_t length) {
  return norm_factor_error(length) + u;
}

Expected TraceBounds::product(DType type, std::int64_t length, const TracedProduct& product,
                              std::optional<double> residual) const {
  double error = product_error(length, product);
  if (!residual) return kernels::rounded(type, product.value, error);
  // The product may have been stored before the addition.
  error += slack * (unit_roundoff(types_.activations) + u) * std::abs(product.value);
  error += slack * u * std::abs(*residual);
  if (traits(types_.activations).keeps_subnormals) error += underflow_error(types_.activations);
  return kernels::rounded(type, product.value + *residual, error);
}

TracedProduct TraceBounds::biased(std::int64_t length, const TracedProduct& product,
                                  double bias) const {
  const double unit = unit_roundoff(types_.activations), sum = product.value + bias;
  double error = product_error(length, product);
  error += slack * ((unit + u) * std::abs(product.value) + u * (std::abs(bias) + std::abs(sum)));
  if (traits(types_.activations).keeps_subnormals) error += underflow_error(types_.activations);
  return {sum, 0, 0, error};
}

Expected TraceBounds::gated(std::int64_t length, const TracedProduct& gate,
                            const TracedProduct& up) const {
  constexpr double steepest = 1.1;  // of silu
  const double of_gate = steepest * product_error(length, gate) +
                         activation_error(ActivationFunction::silu, gate.value);
  const double of_up = product_error(length, up);
  const double factor = stages::silu_mul(gate.value, 1), value = factor * up.value;
  const double error = of_gate * std::abs(up.value) + of_up * std::abs(factor) + of_gate * of_up +
                       u * std::abs(value) + smallest;
  return kernels::rounded(types_.activations, value, slack * error);
}

TraceBounds::Gated TraceBounds::gated_sum(std::int64_t length, const TracedProduct& gate,
                                          const TracedProduct& up) {
  constexpr double steepest = 1.1;  // of silu
  const double of_gate = steepest * product_error(length, gate);
  const double of_activation = activation_error(ActivationFunction::silu, gate.value);
  const double of_up = product_error(length, up);
  const double factor = stages::silu_mul(gate.value, 1), value = factor * up.value;
  return {value, of_gate * std::abs(up.value) + of_up * std::abs(factor),
          of_activation * std::abs(up.value) + (of_gate + of_activation) * of_up +
              u * std::abs(value) + smallest};
}

Expected TraceBounds::gated(double gate, double up) const {
  const double value = stages::silu_mul(gate, up);
  const double error = activation_error(ActivationFunction::silu, gate) * std::abs(up);
  return kernels::rounded(types_.activations, value, error + u * std::abs(value) + smallest);
}

Expected TraceBounds::norm(double value, double factor, double gain, std::int64_t length,
                           bool unrounded) const {
  const double error =
      std::abs(value) * norm_error(length, unrounded) + (factor * std::abs(gain) + 2) * smallest;
  return kernels::rounded(types_.activations, value, slack * error);
}

double TraceBounds::norm_error(std::int64_t length, bool unrounded) const {
  // An element of the row, and the root of their mean square, which no more than all of them
  // change.
  return norm_error(length) + (unrounded ? 2 * unit_roundoff(types_.activations) : 0);
}

double TraceBounds::silu_error(double gate) {
  // The exponential, the division and the product (kernels/reference/elements.hpp).
  return (16 + 4 * std::min(std::abs(gate), 90.0)) * u;
}

double TraceBounds::norm_error(std::int64_t length) {
  return 0.5 * (rows::sum_error(length) + 6 * u) + 6 * u;
}

Expected TraceBounds::rope(DType type, double value, double size, double relative) const {
  return kernels::rounded(type, value, slack * (3 * u + relative) * size + 3 * smallest);
}

Expected TraceBounds::expert_weight(double value, double logit, std::vector<double> summed) {
  for (double& one : summed) {
    if (std::isnan(one)) one = -std::numeric_limits<double>::infinity();
  }
  const double largest = *std::max_element(summed.begin(), summed.end());
  const auto error_of = [largest](double of) {
    return of == largest ? 0 : u * (6 + 5 * std::abs(of - largest));
  };
  double sum = 0, errors = 0;
  for (const double one : summed) {
    const double part = one == largest ? 1 : std::exp(one - largest);
    sum += part;
    if (part > 0) errors += part * error_of(one);
  }
  const double relative =
      error_of(logit) + errors / sum + u * (static_cast<double>(summed.size()) + 5);
  return kernels::rounded(DType::f32, value, slack * relative * value + smallest);
}

Expected TraceBounds::sigmoid(double logit) {
  const double value = stages::sigmoid(logit), relative = u * (12 + 5 * std::abs(logit));
  return kernels::rounded(DType::f32, value, slack * relative * value + smallest);
}

Expected TraceBounds::once(DType type, double value) {
  return kernels::rounded(type, value, slack * u * std::abs(value) + smallest);
}

std::vector<double> TraceBounds::exponential_errors(const stages::Attended& a,
                                                    std::int64_t dim) const {
  const double most = *std::max_element(a.scores.begin(), a.scores.end());
  const double log2_e = std::log2(std::exp(1.0));
  std::vector<double> errors;
  for (std::size_t j = 0; j < a.scores.size(); ++j) {
    const double s = a.scores[j];
    double e = dot_product_error(dim) * (a.norms[j] + std::abs(s));
    e += 3 * u * (std::abs(s) + std::abs(most));
    e += 4 * u * (3 + 2 * log2_e * (most - s)) + 16 * u;
    if (traits(types_.cache).keeps_subnormals &&
        std::exp(s - most) < smallest_normal(types_.cache)) {
      e += 1;
    }
    errors.push_back(e);
  }
  return errors;
}

Expected TraceBounds::weighted_sum(const stages::Attended& a, double value, double errors,
                                   double spread, double norm) const {
  const double size = std::abs(value);
  const auto count = static_cast<std::int64_t>(a.weights.size());
  double error = spread + size * errors + dot_product_error(count) * (size + norm) + 4 * u * size;
  if (bits_of(types_.cache) < 32) error += unit_roundoff(types_.cache) * (size + 6 * norm);
  return kernels::rounded(types_.activations, value, slack * error + smallest);
}

Expected TraceBounds::attention(const stages::Attended& a, const double* values,
                                std::int64_t stride, std::int64_t dim, std::int64_t col) const {
  const auto relative = exponential_errors(a, dim);
  double spread = 0, errors = 0, squares = 0;
  for (std::size_t j = 0; j < a.weights.size(); ++j) {
    const double w = a.weights[j], v = values[static_cast<std::int64_t>(j) * stride + col];
    spread += relative[j] * w * std::abs(v);
    errors += relative[j] * w;
    squares += w * w * v * v;
  }
  return weighted_sum(a, a.result[static_cast<std::size_t>(col)], errors, spread,
                      std::sqrt(squares));
}

std::vector<Expected> TraceBounds::attention_weights(const stages::Attended& a,
                                                     std::int64_t dim) const {
  const auto relative = exponential_errors(a, dim);
  double errors = 0;
  for (std::size_t j = 0; j < a.weights.size(); ++j) errors += relative[j] * a.weights[j];
  std::vector<Expected> expected;
  for (std::size_t j = 0; j < a.weights.size(); ++j)
    expected.push_back(
        weighted_sum(a, a.weights[j], errors, relative[j] * a.weights[j], a.weights[j]));
  return expected;
}

NormStage::NormStage(const stages::Weights& weights, const WeightView& gains, const TraceMatrix& x,
                     double epsilon)
    : want_(stages::rms_norm(weights, gains, x, epsilon)), gains_(weights.row(gains, 0)) {
  for (std::int64_t row = 0; row < x.rows; ++row) {
    factors_.push_back(stages::rms_factor(x, row, epsilon));
  }
}

Expected NormStage::expected(const TraceBounds& bounds, std::int64_t row, std::int64_t col,
                             bool unrounded) const {
  return bounds.norm(want_.row(row)[col], factors_[static_cast<std::size_t>(row)],
                     gains_[static_cast<std::size_t>(col)], want_.cols, unrounded);
}

}  // namespace greta::runtime
