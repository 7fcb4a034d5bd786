#pragma once

#include <cstddef>
#include <vector>

#include "tuner/search/features.hpp"

namespace greta::tuner {

/// The hyperparameters of a GaussianProcess.
struct Relevance {
  std::vector<double> scale;  ///< by column: the larger, the more the column matters
  double order_share = 0.5;   ///< 0: values are equal or not; 1: only their distance counts
  double noise = 1e-3;        ///< variance of a measurement divided by the variance of the values
};

/// A Gaussian process over coordinates of Features: predicts the value at points not observed yet,
/// with an uncertainty. The correlation of two points is exp(-d), where d is the sum over columns
/// of the column's scale times a mix of "differs" (0 or 1) and the distance in order (0…1).
/// Source: Rasmussen, Williams, "Gaussian Processes for Machine Learning", algorithm 2.1.
class GaussianProcess {
 public:
  using Points = std::vector<std::vector<float>>;

  /// Takes at least one point and one value per point.
  GaussianProcess(const Features& features, Relevance relevance, const Points& points,
                  const std::vector<double>& values);

  struct Guess {
    double mean = 0;
    double deviation = 0;
  };
  /// Returns a point's correlations with the observed ones, from which guesses are made.
  std::vector<double> likeness(const std::vector<float>& point) const {
    return likeness(point, size_);
  }
  /// Returns the mean and an upper bound of the deviation, in linear time.
  Guess bound(const std::vector<double>& likeness) const;
  Guess guess(const std::vector<double>& likeness) const;
  /// Returns the logarithm of the likelihood of the values, up to a constant, maximised over mean
  /// and variance.
  double log_likelihood() const { return log_likelihood_; }
  const Relevance& relevance() const { return relevance_; }

 private:
  /// Returns the correlations with the first `count` points.
  std::vector<double> likeness(const std::vector<float>& point, std::size_t count) const;
  void factorise();

  Relevance relevance_;
  std::vector<bool> ordered_;
  std::size_t size_ = 0;
  std::vector<float> columns_;    ///< coordinates of all points, one column after the other
  std::vector<double> factor_;    ///< lower triangle of the Cholesky factor, by rows
  std::vector<double> whitened_;  ///< inverse of the factor times the standardised values
  std::vector<double> weights_;   ///< inverse of the correlations times the standardised values
  double mean_ = 0;
  double deviation_ = 1;
  double log_likelihood_ = 0;
};

/// Returns the expected amount by which a value with this guess is below `best`.
double expected_improvement(const GaussianProcess::Guess& guess, double best);

}  // namespace greta::tuner
