#pragma once

#include <cmath>
#include <cstddef>
#include <numeric>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Returns the coefficients by which the columns, each as long as `target`, add up to `target` with
/// the least squared error, or NaN if there are none. The normal equations get 1e-9 of the mean of
/// their diagonal, so that columns may depend on each other.
inline std::vector<double> least_squares(const std::vector<std::vector<double>>& columns,
                                         const std::vector<double>& target) {
  const std::size_t count = columns.size();
  std::vector<std::vector<double>> left(count, std::vector<double>(count));
  std::vector<double> right(count);
  double trace = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto product = [&](const std::vector<double>& other) {
      return std::inner_product(other.begin(), other.end(), columns[i].begin(), 0.0);
    };
    for (std::size_t j = 0; j <= i; ++j) left[i][j] = product(columns[j]);
    right[i] = product(target);
    trace += left[i][i];
  }
  for (std::size_t i = 0; i < count; ++i) {  // the Cholesky factor in place, and L y = right
    left[i][i] += 1e-9 * trace / static_cast<double>(count);
    for (std::size_t j = 0; j <= i; ++j) {
      double sum = left[i][j];
      for (std::size_t k = 0; k < j; ++k) sum -= left[i][k] * left[j][k];
      left[i][j] = i == j ? std::sqrt(sum) : sum / left[j][j];
    }
    for (std::size_t k = 0; k < i; ++k) right[i] -= left[i][k] * right[k];
    right[i] /= left[i][i];
  }
  for (std::size_t i = count; i-- > 0;) {
    for (std::size_t k = i + 1; k < count; ++k) right[i] -= left[k][i] * right[k];
    right[i] /= left[i][i];
  }
  return right;
}

}  // namespace greta::tuner
