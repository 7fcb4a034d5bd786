#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "tuner/cli/options/tuning_options.hpp"

namespace greta::tuner::cli {

/// Tunes tasks in order. Prints a line or two for each unless options.json, and adds reports to
/// `report` as "results" and "comparisons". Returns whether each has a winner.
bool tune_list(const std::vector<TuningTask>& tasks, const TuningOptions& options,
               nlohmann::json& report);

/// A problem and its time.
struct WeightedProblem {
  Problem problem;
  double us = 0;
};

/// Distributes a time budget over tasks in proportion to the time of each problem, the most
/// expensive first. Problems that would get less than a few seconds are dropped with a message on
/// standard error. A budget that is not a time applies to each task.
std::vector<TuningTask> tasks_by_time(std::vector<WeightedProblem> problems,
                                      const std::string& budget);

}  // namespace greta::tuner::cli
