#include "tuner/search/gaussian_process.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace greta::tuner {
namespace {

/// The inner product, in an order that compilers turn into vector instructions.
double inner_product(const double* a, const double* b, std::size_t count) {
  double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
  std::size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    s0 += a[i] * b[i];
    s1 += a[i + 1] * b[i + 1];
    s2 += a[i + 2] * b[i + 2];
    s3 += a[i + 3] * b[i + 3];
  }
  for (; i < count; ++i) s0 += a[i] * b[i];
  return (s0 + s1) + (s2 + s3);
}

}  // namespace

GaussianProcess::GaussianProcess(const Features& features, Relevance relevance,
                                 const Points& points, const std::vector<double>& values)
    : relevance_(std::move(relevance)), size_(points.size()) {
  const std::size_t n = size_;
  const auto count = static_cast<double>(n);
  for (std::size_t column = 0; column < features.count(); ++column) {
    ordered_.push_back(features.ordered(column));
    for (const auto& point : points) columns_.push_back(point[column]);
  }
  mean_ = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean_) * (value - mean_);
  deviation_ = std::max(std::sqrt(squares / count), 1e-9);

  factor_.resize(n * (n + 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    const auto row = likeness(points[i], i + 1);
    std::copy(row.begin(), row.end(),
              factor_.begin() + static_cast<std::ptrdiff_t>(i * (i + 1) / 2));
  }
  factorise();
  whitened_.resize(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double* row = factor_.data() + i * (i + 1) / 2;
    const double right = (values[i] - mean_) / deviation_;
    whitened_[i] = (right - inner_product(row, whitened_.data(), i)) / row[i];
  }
  weights_ = whitened_;
  for (std::size_t i = n; i-- > 0;) {
    const double* row = factor_.data() + i * (i + 1) / 2;
    weights_[i] /= row[i];
    for (std::size_t j = 0; j < i; ++j) weights_[j] -= row[j] * weights_[i];
  }
  const double fit = inner_product(whitened_.data(), whitened_.data(), n) / count;
  log_likelihood_ = -0.5 * count * std::log(std::max(fit, 1e-12));
  for (std::size_t i = 0; i < n; ++i) log_likelihood_ -= std::log(factor_[i * (i + 1) / 2 + i]);
}

/// Replaces the correlations by their Cholesky factor.
void GaussianProcess::factorise() {
  for (std::size_t i = 0; i < size_; ++i) {
    double* row = factor_.data() + i * (i + 1) / 2;
    for (std::size_t j = 0; j < i; ++j) {
      const double* other = factor_.data() + j * (j + 1) / 2;
      row[j] = (row[j] - inner_product(row, other, j)) / other[j];
    }
    const double rest = 1 + relevance_.noise - inner_product(row, row, i);
    row[i] = std::sqrt(std::max(rest, 1e-9));
  }
}

std::vector<double> GaussianProcess::likeness(const std::vector<float>& point,
                                              std::size_t count) const {
  std::vector<float> distance(count);
  for (std::size_t column = 0; column < ordered_.size(); ++column) {
    const double scale = relevance_.scale[column];
    const double share = ordered_[column] && point[column] >= 0 ? relevance_.order_share : 0;
    const auto differs = static_cast<float>(scale * (1 - share));
    const auto apart = static_cast<float>(scale * share);
    const float here = point[column];
    const float* there = columns_.data() + column * size_;
    for (std::size_t i = 0; i < count; ++i) {
      distance[i] += (there[i] != here ? differs : 0.0F) + apart * std::abs(there[i] - here);
    }
  }
  std::vector<double> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = std::exp(-static_cast<double>(distance[i]));
  return result;
}

GaussianProcess::Guess GaussianProcess::bound(const std::vector<double>& likeness) const {
  const double nearest = *std::max_element(likeness.begin(), likeness.end());
  const double variance = 1 - nearest * nearest / (1 + relevance_.noise);
  return {mean_ + deviation_ * inner_product(likeness.data(), weights_.data(), size_),
          deviation_ * std::sqrt(std::max(variance, 1e-12))};
}

GaussianProcess::Guess GaussianProcess::guess(const std::vector<double>& likeness) const {
  std::vector<double> solved(size_);
  double variance = 1;
  for (std::size_t i = 0; i < size_; ++i) {
    const double* row = factor_.data() + i * (i + 1) / 2;
    solved[i] = (likeness[i] - inner_product(row, solved.data(), i)) / row[i];
    variance -= solved[i] * solved[i];
  }
  const double mean = inner_product(solved.data(), whitened_.data(), size_);
  return {mean_ + deviation_ * mean, deviation_ * std::sqrt(std::max(variance, 1e-12))};
}

double expected_improvement(const GaussianProcess::Guess& guess, double best) {
  const double z = (best - guess.mean) / guess.deviation;
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return guess.deviation * (z * below + density);
}

}  // namespace greta::tuner
