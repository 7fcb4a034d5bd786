#include "tuner/model/time_plan.hpp"

#include <algorithm>

namespace greta::tuner::model {
namespace {

constexpr double least_share = 0.25, most_share = 0.5;  // of comparisons
constexpr double expected_winners = 4;                  // compared one by one
constexpr double fewest_comparisons = 3;                // winners, a chain and the whole
constexpr double least_tuning_s = fixed_task_s + 3;
constexpr double least_share_of_chains = 1.0 / 3;

}  // namespace

double least_comparing_s(const TimeNeeds& needs) {
  return needs.open_s + needs.comparison_s * fewest_comparisons;
}

TimePlan plan_time(const TimeNeeds& needs) {
  const double left_s = std::max(0.0, needs.budget_s - needs.spent_s);
  const double wanted_s = needs.open_s + needs.comparison_s * (expected_winners + 1 +
                                                               static_cast<double>(needs.chains));
  TimePlan plan;
  plan.least_s = needs.spent_s + least_tuning_s + least_comparing_s(needs);
  plan.comparing_s = std::max(least_comparing_s(needs),
                              std::clamp(wanted_s, least_share * left_s, most_share * left_s));
  if (needs.budget_s < plan.least_s) plan.comparing_s = left_s / 2;
  plan.comparing_s = std::min(plan.comparing_s, std::max(left_s - least_tuning_s, left_s / 2));
  plan.tuning_s = left_s - plan.comparing_s;
  plan.total_s = needs.spent_s + plan.tuning_s + plan.comparing_s;
  return plan;
}

double share_of_chains(std::size_t chains, std::size_t winners) {
  if (chains == 0) return 0;
  if (winners == 0) return 1;
  const double part = static_cast<double>(chains) / static_cast<double>(chains + winners);
  return std::max(least_share_of_chains, part);
}

}  // namespace greta::tuner::model
