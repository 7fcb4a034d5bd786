// Protects: a session that was stopped goes on, and ends with the trials of one that was not: for
// every strategy, however many candidates are asked for ahead, and on a proxy problem.

#include <gtest/gtest.h>

#include "tests/tuner/session_fixture.hpp"
#include "tuner/search/strategy.hpp"

namespace greta::test::session_resume_test {
namespace {

class Resume : public ::testing::Test {
 protected:
  Resume() { evaluator_.noise = 0; }  // so that times do not depend on what ran before

  SessionResult tune_in(TunedDb& db, std::int64_t run, const std::string& strategy) {
    SessionOptions options;
    options.budget = Budget::trials_of(25);
    options.strategy = strategy;
    options.seed = 3;
    options.run = run;
    options.started_utc = "2026-01-01T00:00:00Z";
    return tune(evaluator_, db, problem_, options, observer_, observer_.stop_);
  }
  TunedDb open(const std::string& name) {
    return TunedDb::open(folder_ / name, TunedDb::Mode::read_write);
  }
  static std::vector<std::string> configs(const TunedDb& db, std::int64_t session) {
    std::vector<std::string> list;
    for (const Trial& trial : db.trials(session)) {
      if (trial.phase != TrialPhase::lost)
        list.push_back(trial.config.text() + " of " + trial.problem_key);
    }
    return list;
  }
  /// Stops the session after every few trials, until it ends by itself.
  void expect_the_same(const std::string& strategy, int every) {
    SCOPED_TRACE(strategy + ", stopped every " + std::to_string(every));
    TunedDb whole = open(strategy + std::to_string(every) + "whole.db");
    const auto expected = tune_in(whole, 0, strategy);
    TunedDb parts = open(strategy + std::to_string(every) + "parts.db");
    const auto run = parts.begin_run({"request", 3, "", ""});
    SessionResult result;
    int stops = 0;
    do {
      observer_.stop_ = false;
      observer_.trials_ = 0;
      observer_.stop_after_ = every;
      result = tune_in(parts, run, strategy);
      stops += result.interrupted ? 1 : 0;
    } while (result.interrupted && stops < 100);
    observer_.stop_after_ = -1;
    observer_.stop_ = false;
    EXPECT_GT(stops, 2);
    EXPECT_EQ(configs(parts, result.id), configs(whole, expected.id));
    EXPECT_EQ(result.trials.size(), expected.trials.size());
    EXPECT_EQ(result.winner->config, expected.winner->config);
    EXPECT_EQ(result.stand_in.has_value(), expected.stand_in.has_value());
    EXPECT_EQ(parts.sessions().size(), 1U);
    const auto again = tune_in(parts, run, strategy);
    EXPECT_TRUE(again.finished_before);
    EXPECT_EQ(again.winner->config, expected.winner->config);
    EXPECT_EQ(again.trials.size(), expected.trials.size());
  }

  test::TemporaryFolder folder_;
  Problem problem_ = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  FakeEvaluator evaluator_;
  SilentObserver observer_;
};

TEST_F(Resume, EveryStrategyGoesOnAsIfItHadNotBeenStopped) {
  evaluator_.fails = [](const Config& config) -> std::optional<Status> {
    if (config.hash() % 5 == 0) return Status::compile;
    return std::nullopt;
  };
  for (const auto& entry : strategies()) {
    for (const int lookahead : {1, 4}) {
      evaluator_.lookahead_ = lookahead;
      expect_the_same(std::string(entry.name), lookahead == 1 ? 3 : 7);
    }
  }
}

TEST_F(Resume, OnAProxyProblem) {
  evaluator_.speed = 1e-5;
  expect_the_same("local", 5);
}

// What was lost with a killed process was begun again, and the strategy never heard of it.
TEST_F(Resume, LostWorkIsNotATrial) {
  evaluator_.is_killed = [](const Config& config) { return config.hash() % 3 == 0; };
  expect_the_same("local", 4);
}

// The database has learned from the unfinished session, but its search goes on with the
// configurations that it was given first.
TEST_F(Resume, WhatOtherSessionsFoundMeanwhileDoesNotChangeTheSearch) {
  TunedDb whole = open("whole.db");
  const auto expected = tune_in(whole, 0, "local");
  TunedDb db = open("parts.db");
  const auto run = db.begin_run({"request", 3, "", ""});
  observer_.trials_ = 0;
  observer_.stop_after_ = 8;
  ASSERT_TRUE(tune_in(db, run, "local").interrupted);
  observer_.stop_after_ = -1;
  observer_.stop_ = false;
  ASSERT_TRUE(tune_in(db, 0, "random").winner);
  const auto result = tune_in(db, run, "local");
  EXPECT_EQ(result.resumed, 8U);
  const auto all = configs(db, result.id), wanted = configs(whole, expected.id);
  ASSERT_GE(all.size(), 25U);
  EXPECT_TRUE(std::equal(all.begin(), all.begin() + 25, wanted.begin()));
}

TEST_F(Resume, WhatHadFinishedIsPinnedAsWell) {
  TunedDb db = open("parts.db");
  const auto run = db.begin_run({"request", 3, "", ""});
  ASSERT_TRUE(tune_in(db, run, "random").winner);
  const Question question{problem_.key(), evaluator_.device().fingerprint(), true};
  EXPECT_FALSE(db.pinned(question));
  SessionOptions options;
  options.run = run;
  options.pin = true;
  const auto again = tune(evaluator_, db, problem_, options, observer_, observer_.stop_);
  EXPECT_TRUE(again.finished_before);
  EXPECT_TRUE(db.pinned(question));
}

TEST_F(Resume, TrialsThatTheStrategyDoesNotChooseAreNamed) {
  TunedDb db = open("parts.db");
  const auto run = db.begin_run({"request", 3, "", ""});
  observer_.trials_ = 0;
  observer_.stop_after_ = 8;
  const auto stopped = tune_in(db, run, "random");
  observer_.stop_after_ = -1;
  observer_.stop_ = false;
  const auto result = tune_in(db, run, "local");  // as if the strategy had changed
  EXPECT_TRUE(result.winner);
  EXPECT_TRUE(std::any_of(result.notes.begin(), result.notes.end(), [](const std::string& note) {
    return note.find("chooses others now") != std::string::npos;
  }));
}

}  // namespace
}  // namespace greta::test::session_resume_test
