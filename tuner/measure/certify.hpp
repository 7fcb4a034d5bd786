#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "db/finalist.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

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

/// Decides from the paired times of finalists that stayed to the end. contenders[0] is the
/// template's default. It wins unless another contender is proved to be faster: the whole
/// confidence interval of default/other is above 1, and not wider than the gain (the estimate minus
/// 1) unless all of it is above 1.05. The fastest of those wins. Contenders whose interval relative
/// to it contains 1 and whose time is within 1 % of its time are tied, and the first of them in
/// configuration order is chosen, so that repeated runs agree. `comparisons` is the number of
/// contenders that were ever compared with the default, including those dropped on the way; the
/// intervals are corrected for that number.
Certification certify(const std::vector<Finalist>& contenders, std::size_t comparisons,
                      double confidence = 0.95);

/// What the rounds say of one finalist.
struct Standing {
  Interval us;  ///< its median
  /// Time of the default divided by its time, in the rounds that both were in. Nothing if these are
  /// fewer than two, or the default was no finalist.
  std::optional<Interval> speedup;
};

/// Returns the standings of all finalists of a session. The confidence of the speed-ups is that of
/// all comparisons together, as in certify().
std::vector<Standing> standings(const std::vector<Finalist>& finalists, double confidence = 0.95);

/// Returns whether all intervals relative to the winner are as narrow as `target` (relative
/// half-width), except those of contenders that are significantly slower.
bool sure_enough(const Certification& certification, double target);

}  // namespace greta::tuner
