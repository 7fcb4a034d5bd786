// Protects: a session uses what earlier sessions and other devices found, and never forgets it.

#include <gtest/gtest.h>

#include "tests/tuner/session_fixture.hpp"

namespace greta::test::session_memory_test {
namespace {

class SessionMemory : public SessionTest {};

TEST_F(SessionMemory, ALaterSessionStartsFromTheKnownWinner) {
  const auto first = tune_problem("100");
  evaluator_.evaluated_.clear();
  const auto second = tune_problem("2");
  EXPECT_EQ(evaluator_.evaluated_.count(first.winner->config), 1U);
  ASSERT_TRUE(second.winner);
  EXPECT_LE(evaluator_.factor(second.winner->config), evaluator_.factor(first.winner->config));
}

// Never forget: a session that is too short to prove anything leaves the earlier winner in place.
TEST_F(SessionMemory, AnEarlierWinnerStaysUnlessItIsProvedSlower) {
  const Config earlier = winner_from_now_on();
  const auto stored = [&] {
    return *db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true);
  };
  const auto certificate = stored();
  // Now as fast as the default: nothing is proved.
  evaluator_.factor = [](const Config&) { return 1.0; };
  const auto same = tune_problem("1");
  ASSERT_TRUE(same.winner);
  EXPECT_TRUE(same.keeps_earlier);
  EXPECT_EQ(same.winner->config, earlier);
  EXPECT_EQ(stored().session, certificate.session);
  EXPECT_EQ(stored().winner.speedup, certificate.winner.speedup);
  // With another driver the earlier row is stale, so it has a fresh one beside it.
  evaluator_.info_.driver = "fake 2.0";
  EXPECT_FALSE(tune_problem("1").keeps_earlier);
  EXPECT_EQ(stored().winner.config, earlier);
  EXPECT_EQ(stored().provenance.driver, "fake 2.0");
  EXPECT_TRUE(tune_problem("1").keeps_earlier);
  // Slower than the default: the default takes its place.
  evaluator_.factor = [&](const Config& config) { return config == earlier ? 1.3 : 1.0; };
  const auto slower = tune_problem("1");
  EXPECT_FALSE(slower.keeps_earlier);
  EXPECT_TRUE(slower.winner->is_default);
  EXPECT_EQ(stored().winner.config, default_config());
}

// A default that failed when the earlier winner was certified may work now.
TEST_F(SessionMemory, AnEarlierWinnerWithoutARatioGivesItsPlaceToADefaultThatIsAsFast) {
  evaluator_.fails = [&](const Config& config) -> std::optional<Status> {
    if (config == default_config()) return Status::compile;
    return std::nullopt;
  };
  const auto first = tune_problem("20");
  ASSERT_TRUE(first.winner);
  EXPECT_FALSE(has_ratio(*first.winner));
  evaluator_.fails = [](const Config&) -> std::optional<Status> { return std::nullopt; };
  evaluator_.factor = [&](const Config& config) {  // not only by chance
    return config == default_config() ? 1.0 : 1.01;
  };
  const auto second = tune_problem("1");
  ASSERT_TRUE(second.winner);
  EXPECT_FALSE(second.keeps_earlier);
  EXPECT_TRUE(second.winner->is_default);
  EXPECT_TRUE(
      db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true)->winner.is_default);
}

TEST_F(SessionMemory, AnEarlierWinnerThatIsNoLongerRightDoesNotStay) {
  const Config earlier = winner_from_now_on();
  evaluator_.factor = [](const Config&) { return 1.0; };
  evaluator_.fails_last_check = [&](const Config& config) -> std::optional<Status> {
    if (config == earlier) return Status::correctness;
    return std::nullopt;
  };
  const auto result = tune_problem("1");
  EXPECT_FALSE(result.keeps_earlier);
  EXPECT_TRUE(result.winner->is_default);
}

// Winners of all drivers are finalists, not only the latest one.
TEST_F(SessionMemory, WinnersOfEarlierDriversAreFinalists) {
  const Config first = winner_from_now_on();
  evaluator_.info_.driver = "fake 2.0";
  evaluator_.factor = [&](const Config& config) {
    return config == default_config() ? 1.0 : config == first ? 1.2 : 0.8;
  };
  const Config second = tune_problem().winner->config;
  ASSERT_NE(first, second);
  evaluator_.info_.driver = "fake 3.0";
  evaluator_.timed_.clear();
  const auto third = tune_problem("3");
  EXPECT_TRUE(evaluator_.timed_.contains(first));
  EXPECT_TRUE(evaluator_.timed_.contains(second));
  EXPECT_EQ(third.known_winners, (std::vector<Config>{second, first}));
}

// The third is neither the latest nor within the budget, and the fastest.
TEST_F(SessionMemory, EveryEarlierWinnerIsTriedAndTheFastestOfThemIsAFinalist) {
  std::vector<Config> earlier;
  for (const char* driver : {"fake 1.0", "fake 2.0", "fake 3.0"}) {
    evaluator_.info_.driver = driver;
    evaluator_.factor = [&](const Config& config) {
      const bool before = std::find(earlier.begin(), earlier.end(), config) != earlier.end();
      return config == default_config() ? 1.0 : before ? 1.2 : 0.8;
    };
    earlier.push_back(tune_problem().winner->config);
  }
  ASSERT_EQ(std::set<Config>(earlier.begin(), earlier.end()).size(), 3U);
  evaluator_.info_.driver = "fake 4.0";
  evaluator_.factor = [&](const Config& config) {
    return config == default_config() ? 1.0 : config == earlier.front() ? 0.5 : 0.9;
  };
  const auto result = tune_problem("1");
  EXPECT_EQ(result.known_winners.size(), 3U);
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(result.winner->config, earlier.front());
}

// What a search measures of it may be bad luck.
TEST_F(SessionMemory, TheKnownWinnerIsAFinalistHoweverSlowTheSearchFindsIt) {
  const Config first = winner_from_now_on();
  evaluator_.factor = [&](const Config& config) { return config == first ? 1.5 : 1.0; };
  evaluator_.timed_.clear();
  tune_problem();
  EXPECT_TRUE(evaluator_.timed_.contains(first));
}

TEST_F(SessionMemory, WhatWasFastElsewhereIsTriedNextButOnlyWithinTheBudget) {
  const Space space = built_in("gemm").space(problem_, evaluator_.device());
  Config last = default_config();
  for (std::uint64_t i = 0; last == default_config(); ++i) last = space.at(i);
  suggested_ = {last};
  EXPECT_EQ(tune_problem("1").trials.size(), 1U);
  EXPECT_EQ(evaluator_.evaluated_.count(last), 0U);
  evaluator_.evaluated_.clear();
  tune_problem("2");
  EXPECT_EQ(evaluator_.evaluated_.count(last), 1U);
}

// Its winner takes the place of the answer, and must not be slower.
TEST_F(SessionMemory, WhatLookUpsAnswerIsTriedRegardlessOfTheBudget) {
  const Space space = built_in("gemm").space(problem_, evaluator_.device());
  Config fast = default_config();
  for (std::uint64_t i = 0; fast == default_config(); ++i) fast = space.at(i);
  answered_ = fast;
  evaluator_.factor = [&](const Config& config) { return config == fast ? 0.5 : 1.0; };
  const auto result = tune_problem("1");
  EXPECT_EQ(evaluator_.evaluated_.count(fast), 1U);
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(result.winner->config, fast);
}

TEST_F(SessionMemory, ALaterSessionStartsFromWhatAStoppedOneMeasured) {
  observer_.stop_after_ = 30;
  const auto stopped = tune_problem("60");
  ASSERT_TRUE(stopped.interrupted);
  const Config best = best_trial(stopped.trials, problem_.key())->config;
  observer_.stop_ = false;
  evaluator_.evaluated_.clear();
  tune_problem("2");
  EXPECT_EQ(evaluator_.evaluated_.count(best), 1U);
}

}  // namespace
}  // namespace greta::test::session_memory_test
