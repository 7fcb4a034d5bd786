// Protects: the importance of parameters, against decompositions that are worked out by hand.

#include "tuner/page/importance.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

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
}

/// Rows as a search leaves them: most near one place, parameters that depend on each other, and
/// variants that lack parameters. Variant 0 has too many combinations to predict all of them.
Rows searched(int seed) {
  std::mt19937_64 random(static_cast<std::uint64_t>(seed));
  Rows rows;
  for (int i = 0; i < 300; ++i) {
    const auto some = [&](int count) {
      return static_cast<float>(random() % static_cast<unsigned>(count));
    };
    const bool near = random() % 4 != 0;
    const float a = near ? 3 : some(8);
    std::vector<float> row{
        i % 3 == 0 ? 1.0F : 0.0F, a, near ? 7 - a : some(8), some(6), some(6), some(4),
        near ? 1 : some(3)};
    if (row[0] == 1) row[3] = row[4] = absent_coordinate;
    rows.push_back(row);
  }
  return rows;
}

TEST(Importance, SharesAreOfOneVariance) {
  for (int seed = 0; seed < 12; ++seed) {
    // A sum of waves, products and a difference that cancels where the search was.
    const double wave = 0.3 + 0.2 * seed;
    const Predict predict = [&](const std::vector<float>& row) -> double {
      return row[1] + row[2] + static_cast<float>(seed % 3) * row[0] + std::sin(wave * row[3]) +
             static_cast<float>(seed % 2) * row[4] * row[5] - row[6] * row[1] / 4;
    };
    for (const auto variant : {std::optional<std::size_t>(), std::optional<std::size_t>(0)}) {
      const auto found = importance_of(searched(seed), predict, variant);
      double sum = 0;
      for (const auto& one : found.marginals) {
        EXPECT_GE(one.share, 0);
        EXPECT_LE(one.share, 1);
        sum += one.share;
      }
      EXPECT_LE(sum, 1.01) << seed;
      EXPECT_GT(sum, 0.3) << seed;
      for (const auto& one : found.pairs) {
        EXPECT_GE(one.share, 0);
        EXPECT_LE(one.share, 1);
        sum += one.share;
      }
      EXPECT_LE(sum, 1.03) << seed;
    }
  }
}

TEST(Importance, DoesNotDependOnWhereTheSearchWas) {
  // Rows in which b = 1 − a for the most part: f is the same in all of these.
  Rows rows;
  for (int i = 0; i < 50; ++i)
    rows.push_back({static_cast<float>(i % 2), static_cast<float>(1 - i % 2)});
  rows.push_back({0, 0});
  const auto found =
      importance_of(rows, [](const std::vector<float>& row) { return row[0] + row[1]; });
  EXPECT_DOUBLE_EQ(found.marginals[0].share, 0.5);
  EXPECT_DOUBLE_EQ(found.marginals[1].share, 0.5);
  EXPECT_NEAR(found.pairs[0].share, 0, 1e-12);
}

TEST(Importance, NeedsTenTrials) {
  const Rows few(grid.begin(), grid.end());
  const auto found = measured_importance(few, {1, 2, 3, 4});
  EXPECT_EQ(found.importance.marginals[0].share, 0);
  EXPECT_EQ(found.fit, 0);
}

}  // namespace
}  // namespace greta::test::importance_test
