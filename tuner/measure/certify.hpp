#pragma once

#include <cstddef>
#include <vector>

#include "kernels/model/config.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// A finalist and its times in interleaved rounds. us[i] of all contenders belong to one round.
struct Contender {
  Config config;
  std::vector<double> us;
  int batch = 1;  ///< number of launches averaged in each time
};

/// The conclusion from the rounds.
struct Certification {
  std::size_t winner = 0;         ///< position among the contenders; 0 is the default
  Interval speedup{1, 1, 1};      ///< time of the default divided by the winner's
  std::vector<std::size_t> ties;  ///< contenders not significantly different from the winner
  std::vector<Interval> ratios;   ///< time of each contender divided by the winner's
  double confidence = 0.95;       ///< joint confidence of all comparisons (Bonferroni)
  /// Contenders that are significantly faster than the default, by less than the width of their
  /// interval. They don't win: either more rounds narrow the interval, or the default stands.
  std::vector<std::size_t> unproved;
  std::vector<Interval> speedups;  ///< time of the default divided by each contender's
};

/// Decides from paired times. contenders[0] is the template's default. It wins unless another
/// contender is proved to be faster: the whole confidence interval of default/other is above 1, and
/// not wider than the gain (the estimate minus 1) unless all of it is above 1.05. The fastest of
/// those wins. Contenders whose interval relative to it contains 1 and whose time is within 1 % of
/// its time are tied, and the first of them in configuration order is chosen, so that repeated runs
/// agree. `comparisons` is the number of contenders that were ever compared with the default,
/// including those dropped on the way; the intervals are corrected for that number.
Certification certify(const std::vector<Contender>& contenders, std::size_t comparisons,
                      double confidence = 0.95);

/// Returns whether all intervals relative to the winner are as narrow as `target` (relative
/// half-width), except those of contenders that are significantly slower.
bool sure_enough(const Certification& certification, double target);

}  // namespace greta::tuner
