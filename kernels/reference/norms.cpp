#include "kernels/reference/norms.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "kernels/reference/rows.hpp"

namespace greta::kernels::rows {
namespace {

constexpr double smallest = 0x1p-126;

/// Returns the tensor of this name, or nullptr if there is none.
KeptTensor optional_tensor(const std::vector<HostTensor>& inputs, const char* name) {
  const bool there = std::any_of(inputs.begin(), inputs.end(),
                                 [name](const HostTensor& t) { return t.spec.name == name; });
  return there ? keep_tensor(inputs, name) : nullptr;
}

double epsilon_of(const Problem& problem) {
  return std::strtof(problem.attribute("epsilon", "1e-5").c_str(), nullptr);
}

std::size_t index(const KeptTensor& tensor, std::int64_t row, std::int64_t col) {
  return static_cast<std::size_t>(row * tensor->spec.cols + col);
}

/// Applies weight and bias, if present, to a normalised value. The normalised value is a product,
/// which may be flushed before the weight makes it large.
Value apply(Value y, const KeptTensor& weight, const KeptTensor& bias, std::int64_t col) {
  const auto at = static_cast<std::size_t>(col);
  y.error += smallest;
  if (weight) {
    const double w = weight->at(at);
    y = {y.value * w, y.error * std::abs(w) + u * std::abs(y.value * w) + smallest};
  }
  if (bias) {
    y.value += bias->at(at);
    y.error += u * std::abs(y.value) + smallest;
  }
  return y;
}

}  // namespace

TensorSpec output(const Problem& problem, const char* name) {
  return {name, Role::output, problem.out_dtype, problem.dim("rows"), problem.dim("cols")};
}

RmsNorm::RmsNorm(const Problem& problem, const std::vector<HostTensor>& inputs)
    : x_(keep_tensor(inputs, "X")),
      residual_(optional_tensor(inputs, "residual")),
      weight_(optional_tensor(inputs, "weight")),
      epsilon_(epsilon_of(problem)),
      out_(problem.out_dtype) {
  const std::int64_t cols = x_->spec.cols;
  factors_ = for_each_row(x_->spec.rows, [&](std::int64_t row) {
    double squares = 0;
    for (std::int64_t col = 0; col < cols; ++col) {
      const double x = element(row, col).value;
      squares += x * x;
    }
    return 1 / std::sqrt(squares / static_cast<double>(cols) + epsilon_);
  });
}

Value RmsNorm::element(std::int64_t row, std::int64_t col) const {
  const auto at = index(x_, row, col);
  if (!residual_) return {x_->at(at), 0};
  const double sum = x_->at(at) + residual_->at(at);
  return {sum, u * std::abs(sum) + 2 * smallest};
}

Value RmsNorm::normalised(std::int64_t row, std::int64_t col) const {
  const Value x = element(row, col);
  const double factor = factors_[static_cast<std::size_t>(row)];
  const double relative = 0.5 * (sum_error(x_->spec.cols) + 5 * u) + 5 * u;
  const double y = x.value * factor;
  return apply({y, std::abs(y) * relative + factor * (x.error + smallest)}, weight_, nullptr, col);
}

LayerNorm::LayerNorm(const Problem& problem, const std::vector<HostTensor>& inputs)
    : x_(keep_tensor(inputs, "X")),
      weight_(optional_tensor(inputs, "weight")),
      bias_(optional_tensor(inputs, "bias")),
      epsilon_(epsilon_of(problem)),
      out_(problem.out_dtype) {
  moments_ = for_each_row(x_->spec.rows, [this](std::int64_t row) { return moments_of(row); });
}

LayerNorm::Moments LayerNorm::moments_of(std::int64_t row) const {
  std::vector<double> x = row_of(*x_, row);
  const auto count = static_cast<double>(x.size());
  Moments m;
  m.first = x.front();
  for (double& value : x) {
    value -= m.first;
    m.mean += value / count;
  }
  double farthest = 0, average = 0, variance = 0;
  for (const double value : x) {
    const double distance = std::abs(value - m.mean);
    farthest = std::max(farthest, distance);
    average += distance / count;
    variance += distance * distance / count;
  }
  const double merged = merges(x_->spec.cols);
  const double mean_error = (14 + merged) * (u * (average + farthest) + smallest);
  const double variance_error = (sum_error(x_->spec.cols) + 3 * u) * variance +
                                (4 + 2 * merged) * u * farthest * average + mean_error * mean_error;
  m.factor = 1 / std::sqrt(variance + epsilon_);
  m.factor_error = 0.5 * variance_error / (variance + epsilon_) + 5.5 * u;
  m.distance_error = mean_error + 2 * u * farthest + 2 * smallest;
  return m;
}

Value LayerNorm::normalised(std::int64_t row, std::int64_t col) const {
  const Moments& m = moments_[static_cast<std::size_t>(row)];
  const double distance = x_->at(index(x_, row, col)) - m.first - m.mean;
  const double y = distance * m.factor;
  const double error = std::abs(y) * (m.factor_error + 2 * u) + m.distance_error * m.factor;
  return apply({y, error}, weight_, bias_, col);
}

LayerRmsNorm::LayerRmsNorm(const Problem& problem, const std::vector<HostTensor>& inputs)
    : layer_(problem, inputs), gain_(optional_tensor(inputs, "gain")) {
  const std::int64_t cols = problem.dim("cols");
  const double epsilon = epsilon_of(problem);
  factors_ = for_each_row(problem.dim("rows"), [&](std::int64_t row) {
    double squares = 0, errors = 0;
    for (std::int64_t col = 0; col < cols; ++col) {
      const Value y = layer_.normalised(row, col);
      squares += y.value * y.value;
      errors += 2 * std::abs(y.value) * y.error + y.error * y.error;
    }
    const double mean = squares / static_cast<double>(cols) + epsilon;
    const double moved = errors / static_cast<double>(cols) / mean;
    return Value{1 / std::sqrt(mean), 0.5 * (moved + sum_error(cols) + 5 * u) + 4 * u};
  });
}

Value LayerRmsNorm::normalised(std::int64_t row, std::int64_t col) const {
  const Value y = layer_.normalised(row, col);
  const Value& factor = factors_[static_cast<std::size_t>(row)];
  const double z = y.value * factor.value;
  return apply({z, std::abs(z) * (factor.error + u) + factor.value * y.error}, gain_, nullptr, col);
}

}  // namespace greta::kernels::rows
