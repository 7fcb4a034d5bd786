#include "tuner/search/surrogate.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

namespace greta::tuner {
namespace {

/// Number of differing coordinates at which the correlation of two points is 1/e. It was chosen on
/// recorded spaces of 6 to 10 parameters; values from 4 to 8 are about as good.
constexpr double length = 6;
/// Variance of a measurement divided by the variance of the values.
constexpr double noise = 1e-3;

}  // namespace

Surrogate::Surrogate(std::vector<Point> points, std::vector<double> values)
    : points_(std::move(points)) {
  const std::size_t n = points_.size();
  const auto count = static_cast<double>(n);
  mean_ = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (const double value : values) squares += (value - mean_) * (value - mean_);
  deviation_ = std::max(std::sqrt(squares / count), 1e-9);

  const std::size_t coordinates = points_.front().size();
  for (std::size_t distance = 0; distance <= coordinates; ++distance) {
    likeness_by_distance_.push_back(std::exp(-static_cast<double>(distance) / length));
  }
  factor_.reserve(n * (n + 1) / 2);
  for (std::size_t i = 0; i < n; ++i) {
    std::vector<double> row;
    row.reserve(i + 1);
    double diagonal = 1 + noise;
    for (std::size_t j = 0; j < i; ++j) {
      row.push_back(eliminate(j, row, likeness(points_[i], points_[j])));
      diagonal -= row[j] * row[j];
    }
    row.push_back(std::sqrt(diagonal));
    factor_.insert(factor_.end(), row.begin(), row.end());
    whitened_.push_back(eliminate(i, whitened_, (values[i] - mean_) / deviation_));
  }
}

double Surrogate::likeness(const Point& a, const Point& b) const {
  std::size_t distance = 0;
  for (std::size_t i = 0; i < a.size(); ++i) distance += a[i] != b[i] ? 1 : 0;
  return likeness_by_distance_[distance];
}

double Surrogate::eliminate(std::size_t row, const std::vector<double>& solved,
                            double right) const {
  const double* entries = factor_.data() + row * (row + 1) / 2;
  const double known = std::transform_reduce(entries, entries + row, solved.begin(), 0.0);
  return (right - known) / entries[row];
}

Surrogate::Guess Surrogate::guess(const Point& point) const {
  std::vector<double> solved;
  solved.reserve(points_.size());
  double mean = 0;
  double variance = 1;
  for (std::size_t i = 0; i < points_.size(); ++i) {
    solved.push_back(eliminate(i, solved, likeness(point, points_[i])));
    mean += solved[i] * whitened_[i];
    variance -= solved[i] * solved[i];
  }
  return {mean_ + deviation_ * mean, deviation_ * std::sqrt(std::max(variance, 1e-12))};
}

double Surrogate::expected_improvement(const Point& point, double best) const {
  const auto [mean, deviation] = guess(point);
  const double z = (best - mean) / deviation;
  const double below = 0.5 * std::erfc(-z / std::numbers::sqrt2);
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  return deviation * (z * below + density);
}

}  // namespace greta::tuner
