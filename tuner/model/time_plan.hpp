#pragma once

#include <cstddef>

#include "runtime/device/layers.hpp"

namespace greta::tuner::model {

/// What the plan of a model's tuning starts from. Times are in seconds.
struct TimeNeeds {
  double budget_s = 0;      ///< for the whole model
  double spent_s = 0;       ///< until the problems and chains were found
  double open_s = 0;        ///< loading the model once more; 0: it stays loaded
  double comparison_s = 0;  ///< one comparison of two ways to run the model
  std::size_t chains = 0;   ///< alternatives of chains that can be compared
};

/// How the rest of the budget is spent.
struct TimePlan {
  double tuning_s = 0;     ///< for tuning problems
  double comparing_s = 0;  ///< for comparisons in the model: of winners, chains and the whole
  double total_s = 0;      ///< what everything takes: the budget, if that is enough to begin
  double least_s = 0;      ///< the shortest budget for one problem and three comparisons
};

/// What a task takes beyond its search on the first estimate: device, reference, certification.
constexpr double fixed_task_s = 3;

/// Returns the least time of comparisons: that of three, and of loading the model.
double least_comparing_s(const TimeNeeds& needs);

/// Divides a budget: comparisons get what they are expected to take, between a quarter and a half
/// of what is left, and at least the time of three; the rest is for tuning, which gets at least the
/// time of one problem. Of a budget below `least_s`, both get half of what is left.
TimePlan plan_time(const TimeNeeds& needs);

/// Returns the part of the comparisons' time that chains get: in proportion to their number, at
/// least a third.
double share_of_chains(std::size_t chains, std::size_t winners);

}  // namespace greta::tuner::model
