#pragma once

#include <cstddef>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Guesses a value at points not seen yet, and how unsure the guess is: a Gaussian process whose
/// points are the more alike the more coordinates they share. Coordinates have no order, so nothing
/// depends on how a parameter's values are listed.
/// Source: Rasmussen, Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
class Surrogate {
 public:
  using Point = std::vector<int>;

  /// One value for each point; all points have the same number of coordinates.
  Surrogate(std::vector<Point> points, std::vector<double> values);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  Guess guess(const Point& point) const;
  /// How much a point is expected to fall below `best`.
  double expected_improvement(const Point& point, double best) const;

 private:
  double likeness(const Point& a, const Point& b) const;
  /// One step of solving factor * x = right: x[row], given all earlier ones.
  double eliminate(std::size_t row, const std::vector<double>& solved, double right) const;

  std::vector<Point> points_;
  std::vector<double> likeness_by_distance_;
  std::vector<double> factor_;    ///< lower triangle of the Cholesky factor, row by row
  std::vector<double> whitened_;  ///< the factor's inverse times the standardised values
  double mean_ = 0;
  double deviation_ = 1;
};

}  // namespace greta::tuner
