// Protects: the confidence intervals of certification have the stated coverage.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "tests/layers.hpp"
#include "tuner/measure/statistics.hpp"

namespace greta::test::measure_statistics_test {
namespace {

TEST(Statistics, MedianOfOddAndEvenCounts) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 3, 2}), 2.5);
  EXPECT_DOUBLE_EQ(median({}), 0);
}

TEST(Statistics, QuantileInterpolates) {
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 1), 10);
}

// Table values with four digits.
TEST(Statistics, StudentT) {
  EXPECT_NEAR(student_t(1, 0.95), 12.7062, 1e-3);
  EXPECT_NEAR(student_t(2, 0.95), 4.3027, 1e-3);
  EXPECT_NEAR(student_t(4, 0.99), 4.6041, 1e-3);
  EXPECT_NEAR(student_t(30, 0.95), 2.0423, 1e-3);
}

TEST(Statistics, FewSamplesGiveTheExtremes) {
  const auto interval = median_interval({5, 1, 3}, 0.95);
  EXPECT_DOUBLE_EQ(interval.low, 1);
  EXPECT_DOUBLE_EQ(interval.high, 5);
}

// Skewed noise like that of device times: the interval must still cover the true median.
TEST(Statistics, MedianIntervalCoversSkewedData) {
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> noise(0, 0.5);
  int covered = 0;
  constexpr int runs = 2000;
  for (int run = 0; run < runs; ++run) {
    std::vector<double> samples(15);
    for (auto& sample : samples) sample = noise(random);
    covered += median_interval(samples, 0.95).contains(1.0) ? 1 : 0;
  }
  EXPECT_GT(covered, 0.94 * runs);
  EXPECT_LT(covered, runs);  // an interval that always covers would be useless
}

TEST(Statistics, RatioIntervalCoversForFewAndManyPairs) {
  std::mt19937_64 random(2);
  std::normal_distribution<double> noise(0, 0.02);
  for (const int pairs : {3, 5, 12, 40}) {
    int covered = 0;
    constexpr int runs = 1000;
    for (int run = 0; run < runs; ++run) {
      std::vector<double> a;
      std::vector<double> b;
      for (int i = 0; i < pairs; ++i) {
        const double drift = std::exp(10 * noise(random));  // common to both, so it must cancel
        a.push_back(1.2 * drift * std::exp(noise(random)));
        b.push_back(drift * std::exp(noise(random)));
      }
      covered += ratio_interval(a, b, 0.95).contains(1.2) ? 1 : 0;
    }
    EXPECT_GT(covered, 0.93 * runs) << pairs << " pairs";
  }
}

TEST(Statistics, OnePairProvesNothing) {
  const auto interval = ratio_interval({2}, {1}, 0.95);
  EXPECT_EQ(interval.low, 0);
  EXPECT_EQ(interval.high, std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace greta::test::measure_statistics_test
