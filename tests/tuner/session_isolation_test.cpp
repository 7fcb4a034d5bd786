// Protects: a candidate that hung or crashed is not tried again with the same driver, compiler and
// templates. The answer for the least energy stands beside the answer for the least time.

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/tuner/session_fixture.hpp"

namespace greta::test::session_isolation_test {
namespace {

class Isolation : public SessionTest {
 protected:
  Isolation() {
    evaluator_.fails = [this](const Config& config) -> std::optional<Status> {
      if (config == default_config() || config.hash() % 4 != 0) return std::nullopt;
      return config.hash() % 8 == 0 ? Status::crash : Status::timeout;
    };
  }
  /// Tunes, and returns the faulty candidates that were evaluated.
  std::set<Config> faulty_in(const std::string& budget) {
    evaluator_.evaluated_.clear();
    last_ = tune_problem(budget);
    EXPECT_TRUE(last_.winner);
    std::set<Config> faulty;
    for (const auto& [config, times] : evaluator_.evaluated_) {
      if (evaluator_.fails(config)) faulty.insert(config);
    }
    return faulty;
  }
  static std::size_t common(const std::set<Config>& a, const std::set<Config>& b) {
    return static_cast<std::size_t>(
        std::count_if(a.begin(), a.end(), [&](const Config& one) { return b.contains(one); }));
  }
  SessionResult last_;
};

TEST_F(Isolation, ACandidateThatHungOrCrashedIsNotTriedAgain) {
  const auto first = faulty_in("60");
  ASSERT_GT(first.size(), 3U);
  EXPECT_TRUE(last_.not_tried.empty());
  suggested_.assign(first.begin(), first.end());
  const auto second = faulty_in("60");
  EXPECT_EQ(common(first, second), 0U);
  EXPECT_EQ(common(first, last_.not_tried), first.size());
  retry_failed_ = true;
  EXPECT_EQ(common(first, faulty_in("60")), first.size());
  EXPECT_TRUE(last_.not_tried.empty());
}

TEST_F(Isolation, AnotherDriverMayDoBetter) {
  const auto first = faulty_in("60");
  ASSERT_GT(first.size(), 3U);
  evaluator_.info_.driver = "fake 2.0";
  EXPECT_GT(common(first, faulty_in("60")), 0U);
}

TEST_F(Isolation, WrongResultsAreTriedAgain) {
  evaluator_.fails = [this](const Config& config) -> std::optional<Status> {
    if (config == default_config() || config.hash() % 4 != 0) return std::nullopt;
    return Status::correctness;
  };
  const auto first = faulty_in("60");
  ASSERT_GT(first.size(), 3U);
  EXPECT_GT(common(first, faulty_in("60")), 0U);
}

TEST_F(Isolation, ACandidateThatAnotherPartyKilledIsTriedAgain) {
  evaluator_.fails = [](const Config&) { return std::optional<Status>{}; };
  evaluator_.is_killed = [](const Config& config) { return config.hash() % 3 == 0; };
  tune_problem("20");
  const auto lost =
      std::count_if(evaluator_.evaluated_.begin(), evaluator_.evaluated_.end(),
                    [&](const auto& entry) { return evaluator_.is_killed(entry.first); });
  EXPECT_GT(lost, 3);
  EXPECT_TRUE(db_.ended_badly(tune_problem("20").id).empty()) << "their trials followed";
}

TEST_F(Isolation, TheDefaultIsNoException) {
  const Config usual = default_config();
  evaluator_.fails = [&](const Config& config) -> std::optional<Status> {
    if (config == usual) return Status::timeout;
    return std::nullopt;
  };
  EXPECT_EQ(faulty_in("30").size(), 1U);
  EXPECT_EQ(faulty_in("30").size(), 0U);
  EXPECT_EQ(last_.not_tried, std::set<Config>{usual});
}

// Two SIGKILLs are no evidence against a candidate, not even against the default.
TEST_F(Isolation, ADefaultWhoseProcessWasKilledIsTriedAgainInTheFinals) {
  evaluator_.failure_message_ = "the worker was killed by signal 9 (Killed)";
  evaluator_.fails = [this](const Config& config) -> std::optional<Status> {
    const bool first = config == default_config() && evaluator_.evaluated_[config] == 1;
    return first ? std::optional(Status::crash) : std::nullopt;
  };
  const auto result = tune_problem("20");
  ASSERT_TRUE(result.winner);
  EXPECT_GT(result.winner->default_us, 0);
  EXPECT_EQ(evaluator_.evaluated_[default_config()], 2);
}

class LeastEnergy : public SessionTest {
 protected:
  LeastEnergy() {
    for_energy_ = true;
    evaluator_.joules_ = [this](const Config& config) {
      return config == default_config() ? 2 : 1;
    };
  }
};

TEST_F(LeastEnergy, IsAnAnswerBesideTheFastest) {
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  ASSERT_TRUE(result.energy_winner);
  EXPECT_FALSE(result.energy_winner->is_default);
  EXPECT_EQ(result.energy_winner->energy.joules, 1);
  EXPECT_EQ(result.energy_winner->default_energy.joules, 2);
  const auto stored = db_.energy_winners();
  ASSERT_EQ(stored.size(), 1U);
  EXPECT_EQ(stored[0].winner.config, result.energy_winner->config);
  EXPECT_EQ(stored[0].winner.energy.source, "fake energy counter");
  EXPECT_EQ(stored[0].question.problem_key, problem_.key());
  EXPECT_EQ(db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true)->winner.config,
            result.winner->config);
  EXPECT_TRUE(db_.check().empty());
}

TEST_F(LeastEnergy, TheDefaultStaysIfTheIntervalsOverlap) {
  evaluator_.joules_ = [this](const Config& config) {
    return config == default_config() ? 1.0 : 0.97;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.energy_winner);
  EXPECT_TRUE(result.energy_winner->is_default);
}

TEST_F(LeastEnergy, IsNotKnownIfTheDefaultFailsAndTheWinnerStays) {
  evaluator_.fails = [this](const Config& config) -> std::optional<Status> {
    return config == default_config() ? std::optional(Status::timeout) : std::nullopt;
  };
  const auto result = tune_problem();
  EXPECT_TRUE(result.winner);
  EXPECT_FALSE(result.energy_winner);
  EXPECT_TRUE(db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true));
}

TEST_F(LeastEnergy, IsNotWorthTheWinner) {
  evaluator_.joules_ = [](const Config&) -> double { throw Error("the worker vanished"); };
  const auto result = tune_problem();
  EXPECT_TRUE(result.winner);
  EXPECT_FALSE(result.energy_winner);
  EXPECT_TRUE(db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true));
}

TEST_F(LeastEnergy, IsNotAnAnswerWithoutACounter) {
  evaluator_.joules_ = nullptr;
  const auto result = tune_problem();
  EXPECT_TRUE(result.winner);
  EXPECT_FALSE(result.energy_winner);
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.find("reports no energy") != std::string::npos;
  }));
}

}  // namespace
}  // namespace greta::test::session_isolation_test
