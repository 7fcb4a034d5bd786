// Protects: the importance of parameters, against decompositions that are worked out by hand.

#include "tuner/page/importance.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers.hpp"

namespace greta::test::importance_test {
namespace {

const Rows grid{{0, 0}, {0, 1}, {1, 0}, {1, 1}};

TEST(Importance, OfASum) {
  // f = a + 2 b: variances 1/4 and 1, of 5/4 together.
  const auto found =
      importance_of(grid, [](const std::vector<float>& row) { return row[0] + 2 * row[1]; });
  EXPECT_DOUBLE_EQ(found.marginals[0].share, 0.2);
  EXPECT_DOUBLE_EQ(found.marginals[1].share, 0.8);
  EXPECT_EQ(found.marginals[1].values, (std::vector<float>{0, 1}));
  EXPECT_EQ(found.marginals[1].means, (std::vector<double>{0.5, 2.5}));
  ASSERT_EQ(found.pairs.size(), 1U);
  EXPECT_NEAR(found.pairs[0].share, 0, 1e-12);
}

TEST(Importance, OfAPairAlone) {
  const auto found = importance_of(
      grid, [](const std::vector<float>& row) { return row[0] == row[1] ? 1.0 : 0.0; });
  EXPECT_DOUBLE_EQ(found.marginals[0].share, 0);
  EXPECT_DOUBLE_EQ(found.marginals[1].share, 0);
  ASSERT_EQ(found.pairs.size(), 1U);
  EXPECT_EQ(found.pairs[0].a, 0U);
  EXPECT_EQ(found.pairs[0].b, 1U);
  EXPECT_DOUBLE_EQ(found.pairs[0].share, 1);
}

TEST(Importance, OfAParameterThatHalfOfTheRowsHave) {
  // Predictions 0, 1, 0, 0 have a variance of 3/16; the parameter's of 1/4 counts by half.
  const Rows rows{{0, 0}, {0, 1}, {1, absent_coordinate}, {1, absent_coordinate}};
  const auto found = importance_of(
      rows, [](const std::vector<float>& row) { return row[1] == absent_coordinate ? 0 : row[1]; });
  EXPECT_NEAR(found.marginals[1].share, 2.0 / 3, 1e-12);
  EXPECT_EQ(found.marginals[1].means, (std::vector<double>{0, 1}));
}

TEST(Importance, OfTheVariantIsBetweenItsRows) {
  // Means of 1/2 (rows 1 and 2) and 4 (rows 3 and 4) differ from 9/4 by 7/4 each: 49/16 of a
  // variance of (0 + 1 + 16 + 16) / 4 - 81/16 = 51/16. The parameter's variance of 1/4 counts by
  // half.
  const Rows rows{{0, 0}, {0, 1}, {1, absent_coordinate}, {1, absent_coordinate}};
  const auto found = importance_of(
      rows,
      [](const std::vector<float>& row) { return row[1] == absent_coordinate ? 4.0 : row[1]; }, 0);
  EXPECT_NEAR(found.marginals[0].share, 49.0 / 51, 1e-12);
  EXPECT_EQ(found.marginals[0].means, (std::vector<double>{0.5, 4}));
  EXPECT_NEAR(found.marginals[1].share, 2.0 / 51, 1e-12);
  EXPECT_TRUE(found.pairs.empty());
}

TEST(Importance, OfAConstantIsNone) {
  const auto found = importance_of(grid, [](const std::vector<float>&) { return 3.0; });
  EXPECT_EQ(found.marginals[0].share, 0);
  EXPECT_EQ(found.pairs[0].share, 0);
  EXPECT_TRUE(importance_of({}, [](const std::vector<float>&) { return 3.0; }).marginals.empty());
}

TEST(Importance, OfMeasuredTimes) {
  Rows rows;
  std::vector<double> times;
  for (int i = 0; i < 400; ++i) {
    rows.push_back({static_cast<float>(i % 4), static_cast<float>(i / 4 % 3)});
    times.push_back(10 * std::pow(2, i % 4) * (1 + 0.001 * (i % 7)));
  }
  const auto found = measured_importance(rows, times);
  EXPECT_GT(found.importance.marginals[0].share, 0.95);
  EXPECT_LT(found.importance.marginals[1].share, 0.02);
  EXPECT_GT(found.fit, 0.95);
  EXPECT_NEAR(std::exp(found.importance.marginals[0].means[3]), 80, 4);
}

TEST(Importance, NeedsTenTrials) {
  const Rows few(grid.begin(), grid.end());
  const auto found = measured_importance(few, {1, 2, 3, 4});
  EXPECT_EQ(found.importance.marginals[0].share, 0);
  EXPECT_EQ(found.fit, 0);
}

}  // namespace
}  // namespace greta::test::importance_test
