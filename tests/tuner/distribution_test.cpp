// Protects: a budget goes to problems by their share of an application's time, and none that is
// left out goes unmentioned.
#include "tuner/tuning/distribution.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test {
namespace {

Problem problem(int m) {
  return Problem::parse("gemm dtype=f32 out=f32 m=" + std::to_string(m) + " n=8 k=8").value();
}

TEST(Distribution, IsInProportionToTimesTheMostExpensiveFirst) {
  const auto result =
      distribute({{problem(1), 20}, {problem(2), 60}, {problem(3), 20}}, Budget::seconds(100));
  ASSERT_EQ(result.tasks.size(), 3U);
  EXPECT_EQ(result.tasks[0].problem, problem(2));
  EXPECT_DOUBLE_EQ(result.tasks[0].share, 0.6);
  EXPECT_EQ(result.tasks[1].problem, problem(1));
  EXPECT_DOUBLE_EQ(result.tasks[2].share, 0.2);
  EXPECT_TRUE(result.left_out.empty());
  EXPECT_DOUBLE_EQ(result.left_out_share, 0);
}

TEST(Distribution, LeavesOutWhatWouldGetTooLittle) {
  const auto result =
      distribute({{problem(1), 1}, {problem(2), 90}, {problem(3), 9}}, Budget::seconds(100));
  ASSERT_EQ(result.tasks.size(), 2U);
  EXPECT_NEAR(result.tasks[0].share, 90.0 / 99, 1e-12);
  ASSERT_EQ(result.left_out.size(), 1U);
  EXPECT_EQ(result.left_out[0], problem(1));
  EXPECT_NEAR(result.left_out_share, 0.01, 1e-12);
}

TEST(Distribution, CountsWhatEachProblemTakesInAnyCase) {
  const std::vector<WeightedProblem> problems{{problem(1), 10}, {problem(2), 90}};
  EXPECT_EQ(distribute(problems, Budget::seconds(50)).tasks.size(), 2U);
  EXPECT_EQ(distribute(problems, Budget::seconds(50), 3).tasks.size(), 1U);
}

TEST(Distribution, KeepsOneProblemHoweverShortTheBudget) {
  const auto result = distribute({{problem(1), 1}, {problem(2), 2}}, Budget::seconds(0.1));
  ASSERT_EQ(result.tasks.size(), 1U);
  EXPECT_EQ(result.tasks[0].problem, problem(2));
}

TEST(Distribution, GivesEachTaskABudgetOfTrials) {
  const auto result = distribute({{problem(1), 0}, {problem(2), 1e-9}}, Budget::trials_of(5));
  ASSERT_EQ(result.tasks.size(), 2U);
  EXPECT_EQ(result.tasks[1].share, 1);
}

}  // namespace
}  // namespace greta::test
