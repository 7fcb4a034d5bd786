// Protects: the budget of a model's tuning is divided so that comparisons in the model, and among
// them those of chains, get their share, and a budget that is too short is known to be.
#include "tuner/model/time_plan.hpp"

#include <gtest/gtest.h>

namespace greta::tuner::model {
namespace {

TEST(TimePlan, FillsTheBudget) {
  const TimePlan plan =
      plan_time({.budget_s = 120, .spent_s = 20, .open_s = 5, .comparison_s = 3, .chains = 6});
  EXPECT_NEAR(plan.total_s, 120, 1e-9);
  EXPECT_NEAR(plan.comparing_s, 5 + 3 * (4 + 1 + 6), 1e-9);
}

TEST(TimePlan, ComparisonsTakeAtMostHalfOfWhatIsLeft) {
  const TimePlan plan =
      plan_time({.budget_s = 220, .spent_s = 20, .open_s = 5, .comparison_s = 20, .chains = 20});
  EXPECT_NEAR(plan.comparing_s, 100, 1e-9);
  EXPECT_NEAR(plan.tuning_s, 100, 1e-9);
}

TEST(TimePlan, ATooShortBudgetIsKnownBefore) {
  const TimePlan plan =
      plan_time({.budget_s = 20, .spent_s = 15, .open_s = 5, .comparison_s = 5, .chains = 3});
  EXPECT_GT(plan.least_s, 15 + fixed_task_s + 5 + 3 * 5);
  EXPECT_NEAR(plan.comparing_s, 2.5, 1e-9);
  EXPECT_NEAR(plan.total_s, 20, 1e-9);  // it ends with the budget nevertheless
  EXPECT_NEAR(least_comparing_s({.open_s = 5, .comparison_s = 5}), 5 + 3 * 5, 1e-9);
}

TEST(TimePlan, ChainsGetTheirShare) {
  EXPECT_EQ(share_of_chains(0, 5), 0);
  EXPECT_EQ(share_of_chains(3, 0), 1);
  EXPECT_NEAR(share_of_chains(1, 30), 1.0 / 3, 1e-9);
  EXPECT_NEAR(share_of_chains(6, 2), 0.75, 1e-9);
}

}  // namespace
}  // namespace greta::tuner::model
