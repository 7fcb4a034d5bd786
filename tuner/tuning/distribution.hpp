#pragma once

#include <vector>

#include "tuner/tuning/tuner.hpp"

namespace greta::tuner {

/// A problem and the time that an application spends in it.
struct WeightedProblem {
  Problem problem;
  double us = 0;
};

/// Tasks that share a budget.
struct Distribution {
  std::vector<TuningTask> tasks;  ///< the most expensive problem first
  std::vector<Problem> left_out;  ///< problems for which the budget is too short
  double left_out_share = 0;      ///< their share of the total time, 0…1
};

/// Distributes a time budget over problems in proportion to their times. Problems that would get
/// less than a few seconds, beside the `fixed_s` that each takes in any case, are left out. A
/// budget that is not a time applies to each task.
Distribution distribute(std::vector<WeightedProblem> problems, const Budget& budget,
                        double fixed_s = 0);

}  // namespace greta::tuner
