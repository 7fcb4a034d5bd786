#pragma once

#include <cstddef>
#include <vector>

#include "kernels/model/config.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::tuner {

/// A finalist and its times in interleaved rounds: us[i] of all contenders belong to one round.
struct Contender {
  Config config;
  std::vector<double> us;
  int batch = 1;  ///< launches averaged in each time
};

/// What the rounds prove.
struct Certification {
  std::size_t winner = 0;         ///< position among the contenders; 0 is the default
  Interval speedup{1, 1, 1};      ///< time of the default over the winner's
  std::vector<std::size_t> ties;  ///< can't be told apart from the winner
  std::vector<Interval> ratios;   ///< of each contender's time to the winner's
  double confidence = 0.95;       ///< of all comparisons together (Bonferroni)
};

/// Decides from paired times. contenders[0] is the template's default: it wins unless another one
/// is faster for sure, that is, the whole interval of default/other is above 1. Among candidates
/// that are, the fastest wins; those that neither rounds nor 1 % can tell from it are ties, and the
/// first of them in the order of configurations is chosen, so that repeated runs agree.
/// `comparisons`: how many contenders the default was ever compared with, those that were dropped
/// on the way included; each single interval is as wide as that many demand.
Certification certify(const std::vector<Contender>& contenders, std::size_t comparisons,
                      double confidence = 0.95);

/// True once the winner's interval is as narrow as `target` (relative half-width), or no other
/// contender can matter any more.
bool sure_enough(const Certification& certification, double target);

}  // namespace greta::tuner
