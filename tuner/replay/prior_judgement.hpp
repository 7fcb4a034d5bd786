#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/prior/prior.hpp"
#include "tuner/replay/replay.hpp"

namespace greta::tuner {

/// A recorded configuration with what the static prior knows of it.
struct PredictedRow {
  Config config;
  double time_us = 0;
  CostTerms terms{};
};

/// The measured configurations of a problem on a device model.
struct PredictedSpace {
  Problem problem;
  DeviceInfo device;
  Config standard;  ///< the operation's default
  std::vector<PredictedRow> rows;
};

/// Returns what was recorded; without rows for operations that do not describe their work. Nothing
/// for recordings of other tools.
std::optional<PredictedSpace> predicted_space(const Recording& recording);

/// Returns the trials of all sessions by problem and device model, each configuration once: as it
/// was measured first. Problems of operations that are not built in are left out.
std::vector<PredictedSpace> predicted_spaces(const TunedDb& db);

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
