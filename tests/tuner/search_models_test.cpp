// Protects: the models of search strategies predict what they observed, are certain there, do not
// depend on the order of values, and learn which parameters matter.

#include <gtest/gtest.h>

#include <cmath>

#include "kernels/model/random.hpp"
#include "tests/layers.hpp"
#include "tuner/search/gaussian_process.hpp"
#include "tuner/search/random_forest.hpp"

namespace greta::test::search_models_test {
namespace {

Space two_variants() {
  return Space({{"one", {{"A", {8, 1, 4, 2}}, {"B", {5}}, {"C", {0, 1}}}, {}},
                {"other", {{"C", {1, 0}}, {"D", {7, 9}}}, {}}});
}

TEST(Features, AreTheOrderOfValuesAndKnowWhatAVariantLacks) {
  const Space space = two_variants();
  const Features features(space);
  ASSERT_EQ(features.count(), 5U);  // variant, A, B, C, D
  EXPECT_FALSE(features.ordered(0));
  EXPECT_TRUE(features.ordered(1));
  using Point = std::vector<float>;
  const auto point = [&](const char* text) {
    return features.of(space.choice(space.parse(text).value()).value());
  };
  EXPECT_EQ(point("one A=1 B=5 C=0"), (Point{0, 0, 0, 0, Features::absent}));
  EXPECT_EQ(point("one A=8 B=5 C=1"), (Point{0, 1, 0, 1, Features::absent}));
  EXPECT_NEAR(point("one A=4 B=5 C=1")[1], 2.0F / 3, 1e-6F);
  EXPECT_EQ(point("other C=1 D=9"), (Point{1, Features::absent, Features::absent, 1, 1}));
}

TEST(Features, LeaveOutWhatHasOneValue) {
  const Space space({{"only", {{"A", {1, 2}}, {"B", {5}}}, {}}});
  EXPECT_EQ(Features(space).count(), 1U);
}

/// A space of 8^3 and points of it with values that depend on the first parameter only.
struct Sample {
  Space space{std::vector<Alternative>{{"only",
                                        {{"A", {0, 1, 2, 3, 4, 5, 6, 7}},
                                         {"B", {0, 1, 2, 3, 4, 5, 6, 7}},
                                         {"C", {0, 1, 2, 3, 4, 5, 6, 7}}},
                                        {}}}};
  Features features{space};
  GaussianProcess::Points points;
  std::vector<double> values;

  explicit Sample(int count) {
    std::mt19937_64 random(3);
    for (int i = 0; i < count; ++i) {
      const Choice choice = space.choice(uniform_below(random, space.count()));
      points.push_back(features.of(choice));
      values.push_back(value(choice));
    }
  }
  static double value(const Choice& choice) { return std::abs(choice.values[0] - 3.0); }
};

GaussianProcess process(const Sample& sample, std::vector<double> scale) {
  return {sample.features, {.scale = std::move(scale)}, sample.points, sample.values};
}

TEST(GaussianProcess, IsSureOfWhatItObserved) {
  const Sample sample(40);
  const auto model = process(sample, {0.2, 0.2, 0.2});
  for (std::size_t i = 0; i < sample.points.size(); ++i) {
    const auto likeness = model.likeness(sample.points[i]);
    const auto guess = model.guess(likeness);
    EXPECT_NEAR(guess.mean, sample.values[i], 0.1);
    EXPECT_LT(guess.deviation, 0.1);
    EXPECT_NEAR(model.bound(likeness).mean, guess.mean, 1e-9);
  }
}

TEST(GaussianProcess, BoundsItsDeviation) {
  const Sample sample(40);
  const auto model = process(sample, {0.5, 0.1, 1});
  double largest = 0;
  for (std::uint64_t i = 0; i < sample.space.count(); ++i) {
    const auto likeness = model.likeness(sample.features.of(sample.space.choice(i)));
    const auto guess = model.guess(likeness);
    EXPECT_LE(guess.deviation, model.bound(likeness).deviation + 1e-9);
    EXPECT_NEAR(model.bound(likeness).mean, guess.mean, 1e-9);
    largest = std::max(largest, guess.deviation);
  }
  EXPECT_GT(largest, 0.3) << "it is uncertain elsewhere";
}

TEST(GaussianProcess, TheParameterThatMattersIsMoreLikely) {
  const Sample sample(60);
  const double right = process(sample, {1, 0.05, 0.05}).log_likelihood();
  EXPECT_GT(right, process(sample, {0.3, 0.3, 0.3}).log_likelihood() + 5);
  EXPECT_GT(right, process(sample, {0.05, 1, 0.05}).log_likelihood() + 20);
}

TEST(RandomForest, PredictsAFunctionOfOneParameter) {
  const Sample sample(200);
  std::mt19937_64 random(1);
  const RandomForest forest({}, sample.points, sample.values, random);
  double error = 0;
  for (std::uint64_t i = 0; i < sample.space.count(); ++i) {
    const Choice choice = sample.space.choice(i);
    const auto guess = forest.guess(sample.features.of(choice));
    EXPECT_GE(guess.deviation, 0);
    error +=
        std::abs(guess.mean - Sample::value(choice)) / static_cast<double>(sample.space.count());
  }
  EXPECT_LT(error, 0.2);  // the mean distance of the values from their mean is 1
}

TEST(ExpectedImprovement, GrowsWithUncertaintyAndWithLowerMeans) {
  EXPECT_NEAR(expected_improvement({1, 1e-6}, 3), 2, 1e-6);
  EXPECT_NEAR(expected_improvement({3, 1e-6}, 1), 0, 1e-6);
  EXPECT_NEAR(expected_improvement({0, 1}, 0), 0.39894, 1e-4);  // 1 / sqrt(2 pi)
  EXPECT_GT(expected_improvement({2, 2}, 1), expected_improvement({2, 1}, 1));
}

}  // namespace
}  // namespace greta::test::search_models_test
