// Protects: sampled tokens have the distribution of softmax, top-p keeps the most likely tokens,
// and seeds reproduce draws.

#include "runtime/pipeline/llama/sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "tests/layers.hpp"
#include "tests/pipeline/model_files.hpp"

namespace greta::test::sampler_test {
namespace {

using test::expect_refused;

constexpr float infinity = std::numeric_limits<float>::infinity();
const std::vector<float> some{1.5F, -0.25F, 3.0F, 2.0F, 3.0F, -infinity, 0.0F};

std::vector<int> counts(const SamplerOptions& options, int draws) {
  Sampler sampler(options);
  std::vector<int> seen(some.size());
  for (int i = 0; i < draws; ++i) ++seen[static_cast<std::size_t>(sampler.next(some))];
  return seen;
}

TEST(Sampler, WithoutTemperatureTheLowestOfTheLargestIsTaken) {
  Sampler sampler({});
  EXPECT_EQ(sampler.next(some), 2);
  EXPECT_EQ(largest(std::vector<float>{-infinity, -7}), 1);
  EXPECT_EQ(largest(std::vector<float>{5, 5, 5}), 0);
}

// Pearson's statistic of 100,000 draws against softmax: with 5 degrees of freedom it exceeds 25.7
// with probability 1e-4. Equal seeds give equal draws, so the test is deterministic.
TEST(Sampler, DrawsHaveTheDistributionOfSoftmax) {
  for (const double temperature : {0.5, 1.0, 3.0}) {
    constexpr int draws = 100000;
    const std::vector<int> seen = counts({temperature, 1, 11}, draws);
    double total = 0, statistic = 0;
    for (const float logit : some) total += std::exp(logit / temperature);
    for (std::size_t i = 0; i < some.size(); ++i) {
      const double expected = draws * std::exp(some[i] / temperature) / total;
      if (expected > 0) statistic += (seen[i] - expected) * (seen[i] - expected) / expected;
    }
    EXPECT_LT(statistic, 25.7) << temperature;
    EXPECT_EQ(seen[5], 0);
  }
}

// The probabilities are 0.35, 0.35, 0.13, 0.08, …
TEST(Sampler, TopPKeepsTheLikeliest) {
  const auto kept = [](double p) {
    std::string indices;
    const std::vector<int> seen = counts({1, p, 3}, 20000);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] > 0) indices += std::to_string(i);
    }
    return indices;
  };
  EXPECT_EQ(kept(1e-9), "2");
  EXPECT_EQ(kept(0.3), "2");
  EXPECT_EQ(kept(0.6), "24");
  EXPECT_EQ(kept(0.75), "234");
  EXPECT_EQ(kept(1), "012346");
}

// Of the probabilities 0.35, 0.35, 0.13, 0.08, 0.04, … top_k comes before top_p, and min_p before
// both.
TEST(Sampler, TopKAndMinPKeepTheLikeliest) {
  const auto kept = [](std::int64_t top_k, double top_p, double min_p) {
    std::string indices;
    const SamplerOptions options{
        .temperature = 1, .top_p = top_p, .seed = 3, .top_k = top_k, .min_p = min_p};
    const std::vector<int> seen = counts(options, 20000);
    for (std::size_t i = 0; i < seen.size(); ++i) {
      if (seen[i] > 0) indices += std::to_string(i);
    }
    return indices;
  };
  EXPECT_EQ(kept(1, 1, 0), "2");
  EXPECT_EQ(kept(3, 1, 0), "234");
  EXPECT_EQ(kept(3, 0.8, 0), "24");  // (0.35 + 0.35) / 0.83 is more than 0.8
  EXPECT_EQ(kept(0, 1, 0.3), "234");
  EXPECT_EQ(kept(5, 1, 1), "24");
  EXPECT_EQ(kept(100, 1, 0), "012346");
}

// These draws are the same on every machine and with every compiler. If they change, the text for
// users' seeds changes as well.
TEST(Sampler, SeedsRepeatDraws) {
  const auto draws = [](std::uint64_t seed) {
    Sampler sampler({1.0, 0.95, seed});
    std::string text;
    for (int i = 0; i < 24; ++i) text += std::to_string(sampler.next(some));
    return text;
  };
  EXPECT_EQ(draws(1), draws(1));
  EXPECT_NE(draws(1), draws(2));
  EXPECT_EQ(draws(20261120), "224424322202224244244423");
}

TEST(Sampler, ExtremesAreNoTrouble) {
  EXPECT_EQ(Sampler({1e-300, 1, 1}).next(std::vector<float>{1, 2, 1}), 1);
  const std::vector<float> wide{-3e38F, 3e38F};
  EXPECT_EQ(Sampler({1, 1, 1}).next(wide), 1);
  EXPECT_EQ(Sampler({1, 1, 1}).next(std::vector<float>{-5}), 0);
}

// Quotients by the least numbers are infinite, and kernels take those below 2^-126 for 1.
TEST(Sampler, RepetitionPenaltiesHaveARange) {
  for (const double out : {-1.0, 0.0, 1e-46, 1e-38, 1.2e-38, 0.0099, 100.1, double{infinity}}) {
    expect_refused([&] { SamplerOptions{.repetition = out}.check(); }, "repetition penalty is");
  }
  for (const double in : {0.01, 1.0, 100.0}) SamplerOptions{.repetition = in}.check();
}

TEST(Sampler, RefusesWhatMakesNoSense) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  expect_refused([] { Sampler({-1, 1, 0}); }, "temperature is -1");
  expect_refused([] { Sampler({infinity, 1, 0}); }, "temperature is inf");
  expect_refused([] { Sampler({1, 0, 0}); }, "top-p is 0");
  expect_refused([] { Sampler({1, 1.5, 0}); }, "top-p is 1.5");
  expect_refused([&] { Sampler({1, std::nan(""), 0}); }, "top-p is nan");
  expect_refused([] { Sampler({.repetition = 1.5}); }, "penalties are of draws on the device");
  Sampler sampler({1, 1, 0});
  expect_refused([&] { sampler.next(std::vector<float>{0, nan}); }, "logit of token 1 is nan");
  expect_refused([&] { sampler.next(std::vector<float>{infinity, 0}); }, "logit of token 0 is inf");
  expect_refused([&] { sampler.next(std::vector<float>{-infinity}); }, "no token has");
  expect_refused([&] { sampler.next({}); }, "no token has");
}

}  // namespace
}  // namespace greta::test::sampler_test
