// Protects: what a tuning session promises, whatever the device does: every trial recorded, the
// winner certified, never slower than the default, nothing lost when it is stopped.

#include "tuner/session/session.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "kernels/catalog.hpp"
#include "tests/tuner/fake_evaluator.hpp"

namespace greta {
namespace {

class Silent : public SessionObserver {
 public:
  void on_phase(const std::string&) override {}
  void on_trial(const SessionResult&, const Budget&) override {
    if (++trials_ == stop_after_) stop_ = true;
  }
  std::atomic<bool> stop_{false};
  int stop_after_ = -1;
  int trials_ = 0;
};

class SessionTest : public ::testing::Test {
 protected:
  ~SessionTest() override { std::filesystem::remove_all(folder_); }

  SessionResult tune_problem(const std::string& budget = "60", const Problem* other = nullptr) {
    SessionOptions options;
    options.budget = Budget::parse(budget).value();
    options.seed = 3;
    options.started_utc = "2026-01-01T00:00:00Z";
    return tune(evaluator_, db_, other != nullptr ? *other : problem_, options, observer_,
                observer_.stop_);
  }
  Config default_config() const {
    return find_template("gemm")->default_config(problem_, evaluator_.device());
  }

  std::filesystem::path folder_ =
      std::filesystem::temp_directory_path() / ("greta_session_" + std::to_string(getpid()));
  Problem problem_ = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  FakeEvaluator evaluator_;
  TunedDb db_ = TunedDb::open(folder_ / "tuned.db", TunedDb::Mode::read_write);
  Silent observer_;
};

TEST_F(SessionTest, FindsAndStoresACertifiedWinner) {
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_GE(result.trials.size(), 60U);
  EXPECT_GT(result.winner->speedup_low, 1);
  EXPECT_GE(result.winner->rounds, 8);
  EXPECT_LT(evaluator_.factor(result.winner->config), evaluator_.factor(default_config()));
  const auto stored = db_.find_winner(evaluator_.device().fingerprint(), problem_.key(), true);
  ASSERT_TRUE(stored);
  EXPECT_EQ(stored->winner.config, result.winner->config);
  EXPECT_EQ(db_.counts().trials, static_cast<std::int64_t>(result.trials.size()));
}

TEST_F(SessionTest, TheDefaultWinsWhenNothingIsFaster) {
  evaluator_.factor = [&](const Config& config) { return config == default_config() ? 1.0 : 1.05; };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
  EXPECT_EQ(result.winner->config, default_config());
}

TEST_F(SessionTest, TheDefaultWinsWhenAllAreEqual) {
  evaluator_.factor = [](const Config&) { return 1.0; };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
}

TEST_F(SessionTest, NoConfigurationIsEvaluatedTwice) {
  tune_problem();
  for (const auto& [config, count] : evaluator_.evaluated_) EXPECT_EQ(count, 1) << config.text();
}

TEST_F(SessionTest, FailuresAreRecordedAndNeverWin) {
  const Config first = default_config();
  evaluator_.fails = [&](const Config& config) {
    return config != first && config.hash() % 3 != 0 ? std::optional(Status::crash) : std::nullopt;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_FALSE(evaluator_.fails(result.winner->config));
  const auto failed = std::count_if(result.trials.begin(), result.trials.end(),
                                    [](const Trial& trial) { return !trial.ok(); });
  EXPECT_GT(failed, 10);
  EXPECT_EQ(db_.counts().trials, static_cast<std::int64_t>(result.trials.size()));
}

TEST_F(SessionTest, NothingRightMeansNoWinner) {
  evaluator_.fails = [](const Config&) { return std::optional(Status::correctness); };
  const auto result = tune_problem("20");
  EXPECT_FALSE(result.winner);
  EXPECT_EQ(db_.counts().winners, 0);
  EXPECT_EQ(db_.counts().trials, 20);
}

TEST_F(SessionTest, AFailedDefaultDoesNotEndTheSearch) {
  const Config first = default_config();
  evaluator_.fails = [&](const Config& config) {
    return config == first ? std::optional(Status::compile) : std::nullopt;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_FALSE(result.winner->is_default);
  EXPECT_EQ(result.winner->default_us, 0);
  EXPECT_FALSE(result.notes.empty());
}

TEST_F(SessionTest, AWinnerThatFailsItsLastCheckIsReplaced) {
  const auto first = tune_problem();
  evaluator_.fails_last_check = [&](const Config& config) {
    return config == first.winner->config ? std::optional(Status::correctness) : std::nullopt;
  };
  evaluator_.evaluated_.clear();
  const auto second = tune_problem();
  ASSERT_TRUE(second.winner);
  EXPECT_NE(second.winner->config, first.winner->config);
  EXPECT_TRUE(second.winner->verdict.passed);
}

TEST_F(SessionTest, AFinalistThatFailsInTheRoundsIsDropped) {
  const auto first = tune_problem();
  evaluator_.fails_in_rounds = [&](const Config& config) { return config == first.winner->config; };
  const auto second = tune_problem();
  ASSERT_TRUE(second.winner);
  EXPECT_NE(second.winner->config, first.winner->config);
  EXPECT_FALSE(second.notes.empty());
}

TEST_F(SessionTest, StoppingKeepsEveryTrialAndStoresNoWinner) {
  observer_.stop_after_ = 7;
  const auto result = tune_problem("60");
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(result.winner);
  EXPECT_EQ(db_.counts().trials, 7);
  EXPECT_EQ(db_.counts().winners, 0);
}

TEST_F(SessionTest, ALaterSessionStartsFromTheKnownWinner) {
  const auto first = tune_problem("100");
  evaluator_.evaluated_.clear();
  const auto second = tune_problem("2");
  EXPECT_EQ(evaluator_.evaluated_.count(first.winner->config), 1U);
  ASSERT_TRUE(second.winner);
  EXPECT_LE(evaluator_.factor(second.winner->config), evaluator_.factor(first.winner->config));
}

TEST_F(SessionTest, ALaterSessionStartsFromWhatAStoppedOneMeasured) {
  observer_.stop_after_ = 30;
  const auto stopped = tune_problem("60");
  ASSERT_TRUE(stopped.interrupted);
  const Config best = best_trial(stopped.trials, problem_.key())->config;
  observer_.stop_ = false;
  evaluator_.evaluated_.clear();
  tune_problem("2");
  EXPECT_EQ(evaluator_.evaluated_.count(best), 1U);
}

TEST_F(SessionTest, CeilingsAreMeasuredOnceForADriver) {
  tune_problem("5");
  tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 1);
  evaluator_.info_.driver = "fake 2.0";
  tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 2);
}

TEST_F(SessionTest, ASlowDeviceIsSearchedOnAStandInAndConfirmedAtFullSize) {
  evaluator_.fma_gflops_ = 20;  // a 4096³ product would take seconds
  const Problem large = Problem::parse("gemm dtype=f32 out=f32 m=4096 n=4096 k=4096").value();
  const auto result = tune_problem("40", &large);
  ASSERT_TRUE(result.stand_in);
  EXPECT_FALSE(result.notes.empty());
  ASSERT_TRUE(result.winner);
  const auto& keys = evaluator_.problems_;
  const auto full = std::count(keys.begin(), keys.end(), large.key());
  EXPECT_GE(full, 2);  // the default and the winner at least
  EXPECT_LE(full, 6);
  const Work small = find_template("gemm")->work(result.stand_in->problem);
  EXPECT_NEAR(result.winner->median_us / 1e6, result.work.flops / 20e9 * 2, 5);
  EXPECT_LT(small.flops, result.work.flops / 10);
}

TEST_F(SessionTest, CandidatesAreCompiledAhead) {
  tune_problem("20");
  EXPECT_GE(evaluator_.prepared_, 20U);
}

TEST_F(SessionTest, ABudgetOfOneTrialStillGivesAnAnswer) {
  const auto result = tune_problem("1");
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
}

}  // namespace
}  // namespace greta
