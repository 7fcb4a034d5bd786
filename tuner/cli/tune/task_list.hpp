#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tuner/cli/tuning_options.hpp"

namespace greta::tuner::cli {

/// Tunes tasks in their order. Prints a line or two for each, unless options.json; adds what
/// reports say to `report`, as "results" and "comparisons". Returns whether each has a winner.
bool tune_list(const std::vector<TuningTask>& tasks, const TuningOptions& options,
               nlohmann::json& report);

/// A problem, and how much of the time goes to it.
struct WeightedProblem {
  Problem problem;
  double us = 0;
};

/// Tasks that share a budget of time by what each problem costs, the costliest first. Those that
/// would have less than a few seconds are left out, and told in standard error. Budgets that are
/// not of time are each task's own.
std::vector<TuningTask> tasks_by_time(std::vector<WeightedProblem> problems,
                                      const std::string& budget);

}  // namespace greta::tuner::cli
