#pragma once

#include <cstddef>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Predicts the value at points not observed yet, with an uncertainty: a Gaussian process whose
/// correlation decreases with the number of coordinates that differ. Coordinates are unordered, so
/// the order of a parameter's values has no effect. Source: Rasmussen, Williams, "Gaussian
/// Processes for Machine Learning", algorithm 2.1.
class Surrogate {
 public:
  using Point = std::vector<int>;

  /// Takes one value per point. All points have the same number of coordinates.
  Surrogate(std::vector<Point> points, std::vector<double> values);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  Guess guess(const Point& point) const;
  /// Returns the expected amount by which the value at `point` is below `best`.
  double expected_improvement(const Point& point, double best) const;

 private:
  double likeness(const Point& a, const Point& b) const;
  /// Solves one row of the triangular system factor * x = right: returns x[row], given all earlier
  /// elements.
  double eliminate(std::size_t row, const std::vector<double>& solved, double right) const;

  std::vector<Point> points_;
  std::vector<double> likeness_by_distance_;
  std::vector<double> factor_;    ///< lower triangle of the Cholesky factor, by rows
  std::vector<double> whitened_;  ///< inverse of the factor times the standardised values
  double mean_ = 0;
  double deviation_ = 1;
};

}  // namespace greta::tuner
