#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// Configurations as rows of coordinates, one for each parameter.
using Rows = std::vector<std::vector<float>>;
/// Predicts the logarithm of the time of a configuration.
using Predict = std::function<double(const std::vector<float>&)>;

/// The effect of one parameter by itself.
struct Marginal {
  std::vector<float> values;  ///< those that occur, ascending
  double share = 0;  ///< of the variance of the predictions that the parameter explains alone, 0…1
};

/// The effect of two parameters beyond what each has by itself.
struct PairEffect {
  std::size_t a = 0, b = 0;  ///< a < b
  double share = 0;          ///< as of Marginal
};

struct Importance {
  std::vector<Marginal> marginals;  ///< by parameter
  std::vector<PairEffect> pairs;    ///< the largest first
};

/// Marks a parameter that a row lacks.
inline constexpr float absent_coordinate = -1;

/// Decomposes the variance of predictions, as functional ANOVA does. Rows that have the same
/// parameters and the same variant are a group. The variance is that over the combinations of the
/// values that a group's rows have, each combination counted once, and between groups, each
/// weighted by its rows. A parameter's share is the variance of its values' means within groups, a
/// pair's what the means of pairs of values have beyond that. Therefore shares add up to at most 1.
/// Of more than 4096 combinations, as many are sampled. Pairs are those of the `most_paired`
/// parameters with the largest shares. The column `variant` says which parameters a row has, so
/// that it is not exchanged: its share is the variance between its groups, and it takes part in no
/// pair. Source: Hutter, Hoos, Leyton-Brown, "An
/// Efficient Approach for Assessing Hyperparameter Importance", ICML 2014.
Importance importance_of(const Rows& rows, const Predict& predict,
                         std::optional<std::size_t> variant = {}, std::size_t most_paired = 5);

/// The same for measured times: the predictions are those of a random forest.
struct MeasuredImportance {
  Importance importance;
  /// Share of the variance of the log times of every fifth row that a forest of the others
  /// predicts; negative if it predicts worse than their mean does.
  double fit = 0;
};
/// `times` are positive, one for each row. Of more than 1000 rows, 1000 that are evenly spaced are
/// used. With fewer than 10 rows, or equal times, no parameter has a share.
MeasuredImportance measured_importance(const Rows& rows, const std::vector<double>& times,
                                       std::optional<std::size_t> variant = {});

}  // namespace greta::tuner
