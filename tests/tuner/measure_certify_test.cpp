// Protects: tuning never makes a user slower, and repeated runs agree.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "tests/layers.hpp"
#include "tuner/measure/certify.hpp"

namespace greta::test::measure_certify_test {
namespace {

Config config(int id) {
  return {"tiled", {{"BM", id}}};
}

Certification certify_all(const std::vector<Finalist>& contenders) {
  return certify(contenders, contenders.size() - 1);
}

// Returns contenders with the given true times, in rounds with common drift and individual noise.
std::vector<Finalist> measured(const std::vector<double>& us, int rounds, double noise,
                               std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, 1);
  std::vector<Finalist> contenders;
  for (std::size_t i = 0; i < us.size(); ++i)
    contenders.push_back({config(static_cast<int>(i)), {}});
  for (int round = 0; round < rounds; ++round) {
    const double drift = std::exp(0.1 * normal(random));
    for (std::size_t i = 0; i < us.size(); ++i) {
      contenders[i].us.push_back(us[i] * drift * std::exp(noise * normal(random)));
    }
  }
  return contenders;
}

TEST(Certify, ClearWinnerIsCertified) {
  const auto result = certify_all(measured({100, 80, 95}, 20, 0.02, 1));
  EXPECT_EQ(result.winner, 1U);
  EXPECT_GT(result.speedup.low, 1.15);
  EXPECT_LT(result.speedup.high, 1.35);
  EXPECT_TRUE(result.ties.empty());
}

TEST(Certify, NothingFasterMeansTheDefaultWins) {
  const auto result = certify_all(measured({100, 105, 120}, 20, 0.02, 2));
  EXPECT_EQ(result.winner, 0U);
  EXPECT_DOUBLE_EQ(result.speedup.estimate, 1);
}

TEST(Certify, TheDefaultAloneWins) {
  EXPECT_EQ(certify_all(measured({100}, 5, 0.02, 3)).winner, 0U);
}

TEST(Certify, OneRoundProvesNothing) {
  EXPECT_EQ(certify_all(measured({100, 10}, 1, 0.001, 4)).winner, 0U);
}

// A gain that is smaller than the width of its interval is no claim to make.
TEST(Certify, AnIntervalWiderThanTheGainProvesNothing) {
  std::vector<Finalist> contenders{{config(0), {}}, {config(1), {}}};
  for (int round = 0; round < 30; ++round) {
    contenders[0].us.push_back(100);
    contenders[1].us.push_back(100 / (round % 3 == 0 ? 1.30 : 1.01));
  }
  const auto wide = certify_all(contenders);
  EXPECT_EQ(wide.winner, 0U);
  EXPECT_DOUBLE_EQ(wide.speedup.estimate, 1);
  ASSERT_EQ(wide.unproved, std::vector<std::size_t>{1});
  EXPECT_GT(wide.speedups[1].low, 1);
  EXPECT_GT(wide.speedups[1].high - wide.speedups[1].low, wide.speedups[1].estimate - 1);

  for (double& us : contenders[1].us) us = 100 / 1.02;
  const auto narrow = certify_all(contenders);
  EXPECT_EQ(narrow.winner, 1U);
  EXPECT_TRUE(narrow.unproved.empty());
}

// By hand: logarithms of a constant ratio have no spread, so that each interval is the ratio
// itself.
TEST(Certify, StandingsCompareTheRoundsThatBothWereIn) {
  const std::vector<Finalist> finalists{
      {.config = config(0), .us = {100, 200, 400, 100, 100, 100}, .is_default = true},
      {.config = config(1), .us = {50, 100, 200, 50, 50, 50}},
      {.config = config(2), .us = {125, 250, 500}, .left = Departure::slower},
      {.config = config(3), .us = {1}, .left = Departure::failed}};
  const auto standing = standings(finalists);
  ASSERT_EQ(standing.size(), 4U);
  EXPECT_EQ(standing[0].us.estimate, 100);
  EXPECT_EQ(standing[1].us.estimate, 50);
  EXPECT_EQ(standing[1].us.low, 50);
  EXPECT_EQ(standing[1].us.high, 200);
  ASSERT_TRUE(standing[0].speedup && standing[1].speedup && standing[2].speedup);
  EXPECT_EQ(standing[0].speedup->estimate, 1);
  EXPECT_NEAR(standing[1].speedup->estimate, 2, 1e-12);
  EXPECT_NEAR(standing[2].speedup->low, 0.8, 1e-12);
  EXPECT_NEAR(standing[2].speedup->high, 0.8, 1e-12);
  EXPECT_FALSE(standing[3].speedup);
}

TEST(Certify, StandingsWithoutTheDefaultHaveNoSpeedup) {
  EXPECT_TRUE(standings({}).empty());
  const auto standing = standings({{.config = config(1), .us = {1, 2, 3}}});
  ASSERT_EQ(standing.size(), 1U);
  EXPECT_EQ(standing[0].us.estimate, 2);
  EXPECT_FALSE(standing[0].speedup);
}

// The rate of false positives over all comparisons together is at most 5 %.
TEST(Certify, FalseCertificationsAreRare) {
  for (const int rounds : {3, 8, 12, 30}) {
    int wrong = 0;
    constexpr int runs = 600;
    for (int run = 0; run < runs; ++run) {
      const auto seed = static_cast<std::uint64_t>(1000 * rounds + run);
      wrong +=
          certify_all(measured({100, 100, 100, 100, 100}, rounds, 0.03, seed)).winner != 0 ? 1 : 0;
    }
    EXPECT_LE(wrong, 0.05 * runs) << rounds << " rounds";
  }
}

// Repeated looks and dropping losers on the way, as in a session, must not inflate false positives.
TEST(Certify, FalseCertificationsStayRareWhenLosersAreDropped) {
  int wrong = 0;
  constexpr int runs = 500;
  for (std::uint64_t run = 0; run < runs; ++run) {
    auto contenders = measured({100, 100, 104, 104, 104}, 60, 0.01, 50000 + run);
    std::size_t rounds = 8;
    const auto seen = [&] {
      auto part = contenders;
      for (auto& contender : part) contender.us.resize(rounds);
      return part;
    };
    while (rounds < 60 && !sure_enough(certify(seen(), 4), 0.005)) {
      const auto certification = certify(seen(), 4);
      for (std::size_t i = contenders.size(); i-- > 1;) {
        if (i != certification.winner && certification.ratios[i].low > 1.02) {
          contenders.erase(contenders.begin() + static_cast<std::ptrdiff_t>(i));
        }
      }
      ++rounds;
    }
    wrong += certify(seen(), 4).winner != 0 ? 1 : 0;
  }
  EXPECT_LE(wrong, 0.03 * runs);
}

// A slower candidate must never be certified in practice.
TEST(Certify, SlowerCandidatesAreNotCertified) {
  int wrong = 0;
  for (std::uint64_t run = 0; run < 500; ++run) {
    wrong += certify_all(measured({100, 103, 103}, 12, 0.03, run)).winner != 0 ? 1 : 0;
  }
  EXPECT_LE(wrong, 2);
}

TEST(Certify, TiesAreToldAndBreakTheSameWay) {
  std::size_t first = 0;
  std::size_t ties = 0;
  for (std::uint64_t run = 0; run < 50; ++run) {
    const auto result = certify_all(measured({100, 70, 70, 70}, 40, 0.005, run));
    first += result.winner == 1 ? 1 : 0;
    ties += result.ties.size();
  }
  EXPECT_GE(first, 45U);  // the first in order, unless noise separates it
  EXPECT_GE(ties, 80U);
}

TEST(Certify, OrderOfContendersDoesNotMatter) {
  auto contenders = measured({100, 70, 70, 90}, 30, 0.004, 9);
  const auto before = contenders[certify_all(contenders).winner].config;
  std::reverse(contenders.begin() + 1, contenders.end());
  EXPECT_EQ(contenders[certify_all(contenders).winner].config, before);
}

TEST(Certify, SureEnoughNeedsNarrowIntervals) {
  EXPECT_FALSE(sure_enough(certify_all(measured({100, 99}, 8, 0.05, 5)), 0.005));
  EXPECT_TRUE(sure_enough(certify_all(measured({100, 80}, 60, 0.001, 6)), 0.005));
}

}  // namespace
}  // namespace greta::test::measure_certify_test
