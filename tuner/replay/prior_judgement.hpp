#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "kernels/prior/prior.hpp"
#include "tuner/replay/replay.hpp"

namespace greta::tuner {

/// A recorded configuration with what the static prior knows of it.
struct PredictedRow {
  Config config;
  double time_us = 0;
  CostTerms terms{};
};

/// Returns the configurations of a recording that were measured, with their terms; empty for
/// recordings of other tools, and for operations that do not describe their work.
std::vector<PredictedRow> predicted_rows(const Recording& recording);

/// How well predictions rank a recorded space. A regret is a time divided by the optimum, less 1.
struct PriorJudgement {
  static constexpr std::array<std::size_t, 3> tops{1, 5, 20};
  double rank_correlation = 0;               ///< Spearman's
  std::array<double, tops.size()> regret{};  ///< of the best of the first `tops` predictions
  std::optional<double> default_regret;  ///< nothing: the default is unknown or was not recorded
};

/// Judges the fitted prior. There must be at least two rows.
PriorJudgement judge_prior(const std::vector<PredictedRow>& rows,
                           const std::optional<Config>& standard = std::nullopt);

}  // namespace greta::tuner
