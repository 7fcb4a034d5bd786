#include "tuner/measure/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

namespace greta::tuner {
namespace {

// Returns the largest r for which [x(r), x(n+1-r)] (1-based order statistics) covers the median
// with the given confidence; nothing if even [min, max] does not.
std::optional<std::size_t> covering_rank(std::size_t n, double confidence) {
  std::optional<std::size_t> best;
  double tail = std::pow(0.5, static_cast<double>(n));  // P(X <= 0), X ~ binomial(n, 1/2)
  double term = tail;
  for (std::size_t r = 1; 2 * r <= n && 1 - 2 * tail >= confidence; ++r) {
    best = r;
    term *= static_cast<double>(n - r + 1) / static_cast<double>(r);
    tail += term;
  }
  return best;
}

// Computes P(|T| <= t) with Simpson's rule on the density after the substitution t = sqrt(degrees)
// tan(angle), which transforms it into the integral of cos^(degrees-1).
double student_central_probability(int degrees, double t) {
  const double end = std::atan(t / std::sqrt(static_cast<double>(degrees)));
  const auto integral = [&](double upper) {
    constexpr int steps = 200;
    const double h = upper / steps;
    double sum = 0;
    for (int i = 0; i <= steps; ++i) {
      const double weight = i == 0 || i == steps ? 1 : (i % 2 == 1 ? 4 : 2);
      sum += weight * std::pow(std::cos(i * h), degrees - 1);
    }
    return sum * h / 3;
  };
  return integral(end) / integral(std::acos(0.0));
}

}  // namespace

double quantile(std::vector<double> values, double at) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const double position = at * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], position - static_cast<double>(below));
}

double median(std::vector<double> values) {
  return quantile(std::move(values), 0.5);
}

Interval median_interval(const std::vector<double>& samples, double confidence) {
  if (samples.empty()) return {};
  auto sorted = samples;
  std::sort(sorted.begin(), sorted.end());
  const std::size_t rank = covering_rank(sorted.size(), confidence).value_or(1);
  return {sorted[rank - 1], sorted[sorted.size() - rank], median(sorted)};
}

double student_t(int degrees, double confidence) {
  double low = 0;
  double high = 1e6;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_central_probability(degrees, middle) < confidence ? low : high) = middle;
  }
  return (low + high) / 2;
}

Interval ratio_interval(const std::vector<double>& a, const std::vector<double>& b,
                        double confidence) {
  const std::size_t n = std::min(a.size(), b.size());
  std::vector<double> logs(n);
  for (std::size_t i = 0; i < n; ++i) logs[i] = std::log(a[i] / b[i]);
  if (n < 2) {
    return {0, std::numeric_limits<double>::infinity(), n == 1 ? std::exp(logs[0]) : 1};
  }
  if (covering_rank(n, confidence)) {
    const Interval interval = median_interval(logs, confidence);
    return {std::exp(interval.low), std::exp(interval.high), std::exp(interval.estimate)};
  }
  const double mean = std::accumulate(logs.begin(), logs.end(), 0.0) / static_cast<double>(n);
  double squares = 0;
  for (const double log : logs) squares += (log - mean) * (log - mean);
  const double error = std::sqrt(squares / static_cast<double>(n - 1) / static_cast<double>(n));
  const double half = student_t(static_cast<int>(n) - 1, confidence) * error;
  return {std::exp(mean - half), std::exp(mean + half), std::exp(mean)};
}

}  // namespace greta::tuner
