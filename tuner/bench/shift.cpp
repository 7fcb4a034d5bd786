#include "tuner/bench/shift.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

namespace greta::tuner {
namespace {

constexpr std::size_t most_exact = 1000;  // above this the normal approximation is accurate

/// Returns the value that a standard normal variable exceeds with probability `error`.
double normal_quantile(double error) {
  double low = 0, high = 10;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (std::erfc(middle / std::sqrt(2.0)) / 2 > error ? low : high) = middle;
  }
  return high;
}

/// Returns the largest rank r for which the r-th smallest of the m n differences is a lower bound
/// of the shift with this one-sided error; nothing if even the smallest is not. Exact up to about
/// 30 values each: counts the orders of m and n values for each rank sum.
std::optional<std::size_t> bounding_rank(std::size_t m, std::size_t n, double error) {
  if (m * n > most_exact) {
    const auto pairs = static_cast<double>(m * n);
    const double deviation = std::sqrt(pairs * static_cast<double>(m + n + 1) / 12);
    return static_cast<std::size_t>(
        std::max(1.0, std::floor(pairs / 2 - normal_quantile(error) * deviation)));
  }
  // ways[j][u]: number of orders of i old and j new values with u pairs whose new value is first.
  const std::size_t most = m * n / 2;  // beyond it the error exceeds a half
  std::vector<std::vector<double>> ways(n + 1, std::vector<double>(most + 1, 0));
  for (auto& row : ways) row[0] = 1;
  for (std::size_t i = 1; i <= m; ++i) {
    for (std::size_t j = 1; j <= n; ++j) {
      for (std::size_t u = std::min(i * j, most) + 1; u-- > 0;) {
        // The last value is a new one, which precedes no old one, or an old one, which follows j
        // new ones.
        ways[j][u] = ways[j - 1][u] + (u >= j ? ways[j][u - j] : 0);
      }
    }
  }
  double all = 1;  // orders of m and n values
  for (std::size_t i = 1; i <= n; ++i) {
    all *= static_cast<double>(m + i) / static_cast<double>(i);
  }
  double below = 0;
  std::optional<std::size_t> rank;
  for (std::size_t u = 0; u <= most; ++u) {
    below += ways[n][u] / all;
    if (below > error) break;
    rank = u + 1;
  }
  return rank;
}

}  // namespace

Interval shift_interval(const std::vector<double>& base, const std::vector<double>& fresh,
                        double confidence) {
  std::vector<double> differences;
  for (const double b : base) {
    for (const double f : fresh) differences.push_back(f - b);
  }
  std::sort(differences.begin(), differences.end());
  Interval interval{0, std::numeric_limits<double>::infinity(), 1};
  if (differences.empty()) return interval;
  interval.estimate = std::exp(median(differences));
  if (const auto rank = bounding_rank(base.size(), fresh.size(), (1 - confidence) / 2)) {
    interval.low = std::exp(differences[*rank - 1]);
    interval.high = std::exp(differences[differences.size() - *rank]);
  }
  return interval;
}

}  // namespace greta::tuner
