// Protects: the guarantees of a tuning session on any device. Every trial is recorded, the winner
// is certified and never slower than the default, and nothing is lost when the session is stopped.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/tuner/session_fixture.hpp"

namespace greta::test::session_test {
namespace {

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

TEST_F(SessionTest, StoresTheRoundsOfAllFinalists) {
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  ASSERT_GE(result.finalists.size(), 2U);
  EXPECT_TRUE(result.finalists.front().is_default);
  EXPECT_EQ(result.finalists.front().us, result.winner->default_samples_us);
  const auto winner =
      std::find_if(result.finalists.begin(), result.finalists.end(),
                   [&](const Finalist& one) { return one.config == result.winner->config; });
  ASSERT_NE(winner, result.finalists.end());
  EXPECT_EQ(winner->us, result.winner->measurement.samples_us);
  for (const Finalist& one : result.finalists) {
    // The last round, which all others have as well, may be the one that shows who is slower.
    const bool in_last_round = one.left == Departure::slower && one.us.size() == winner->us.size();
    EXPECT_EQ(one.left.has_value() && !in_last_round, one.us.size() < winner->us.size())
        << one.config.text();
  }
  EXPECT_EQ(db_.finalists(result.id), result.finalists);
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

// The placement of operands changes from process to process, and with it the time of short
// launches.
TEST_F(SessionTest, AShortWinnerIsFasterInEachOfSixProcesses) {
  evaluator_.factor = [&](const Config& config) {
    if (config == default_config()) return 1.0;
    return config.hash() % 2 == 0 ? 1.5 : 0.8 + 0.03 * evaluator_.renewed_;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_FALSE(result.winner->is_default);
  EXPECT_LT(result.winner->default_us, 200);
  EXPECT_EQ(evaluator_.renewed_, 5);
  EXPECT_NEAR(result.winner->speedup_low, 1 / 0.95, 0.01);
  EXPECT_NEAR(result.winner->speedup_high, 1 / 0.8, 0.01);
  EXPECT_NEAR(result.winner->speedup, 1 / 0.875, 0.01);
}

TEST_F(SessionTest, WhatCanNotBeTimedElsewhereIsNoWinner) {
  const Config first = winner_from_now_on();
  evaluator_.fails_in_rounds = [&](const Config& config) {
    return config == first && evaluator_.renewed_ > 1;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_NE(result.winner->config, first);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.front().find("could not be timed in another: planted"), std::string::npos);
}

TEST_F(SessionTest, OneFailureElsewhereIsForgiven) {
  const Config first = winner_from_now_on();
  evaluator_.fails_in_rounds = [&](const Config&) { return evaluator_.renewed_ == 3; };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(result.winner->config, first);
  EXPECT_EQ(evaluator_.renewed_, 6);
}

TEST_F(SessionTest, OnTheCpuOneProcessIsEnough) {
  evaluator_.info_.kind = DeviceKind::cpu;
  EXPECT_FALSE(tune_problem().winner->is_default);
  EXPECT_EQ(evaluator_.renewed_, 0);
}

TEST_F(SessionTest, WhatIsFasterInOneProcessOnlyIsNoWinner) {
  const Config first = tune_problem().winner->config;
  evaluator_.renewed_ = 0;
  evaluator_.factor = [&](const Config& config) {
    if (config == default_config()) return 1.0;
    return config == first && evaluator_.renewed_ < 3 ? 0.8 : 1.02;
  };
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
  EXPECT_EQ(evaluator_.renewed_, 3);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.front().find(first.text() + " is faster than the default in one process"),
            std::string::npos);
  EXPECT_EQ(departure(result, first), Departure::slower_elsewhere);
}

// Where a new process takes long, the candidates after the first one would exceed the budget by
// far.
TEST_F(SessionTest, AfterTheBudgetOnlyOneCandidateIsTimedElsewhere) {
  const Config first = winner_from_now_on(), usual = default_config();
  const Config second = [&] {
    Config other = first;
    for (const Trial& trial : tune_problem("30").trials) {
      if (trial.config != first && trial.config != usual) other = trial.config;
    }
    return other;
  }();
  suggested_ = {first, second};
  evaluator_.renewed_ = 0;
  evaluator_.factor = [&](const Config& config) {
    if (config == usual) return 1.0;
    if (config == first) return evaluator_.renewed_ < 1 ? 0.8 : 1.02;
    return config == second ? 0.81 : 1.1;
  };
  evaluator_.renews_ = [] { std::this_thread::sleep_for(std::chrono::milliseconds(600)); };
  const auto result = tune_problem("0.5s");
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
  EXPECT_EQ(evaluator_.renewed_, 1);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_NE(result.notes.back().find("was not compared with the default in further processes"),
            std::string::npos)
      << result.notes.back();
}

TEST_F(SessionTest, LongWinnersNeedOneProcess) {
  evaluator_.speed = 1e-3;
  const auto result = tune_problem();
  ASSERT_TRUE(result.winner);
  EXPECT_FALSE(result.winner->is_default);
  EXPECT_GT(result.winner->default_us, 200);
  EXPECT_EQ(evaluator_.renewed_, 0);
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
  const Config first = winner_from_now_on();
  evaluator_.fails_last_check = [&](const Config& config) {
    return config == first ? std::optional(Status::correctness) : std::nullopt;
  };
  evaluator_.evaluated_.clear();
  const auto second = tune_problem();
  ASSERT_TRUE(second.winner);
  EXPECT_NE(second.winner->config, first);
  EXPECT_TRUE(second.winner->verdict.passed);
  EXPECT_EQ(departure(second, first), Departure::failed);
}

TEST_F(SessionTest, AFinalistThatFailsInTheRoundsIsDropped) {
  const auto first = tune_problem();
  evaluator_.fails_in_rounds = [&](const Config& config) { return config == first.winner->config; };
  const auto second = tune_problem();
  ASSERT_TRUE(second.winner);
  EXPECT_NE(second.winner->config, first.winner->config);
  EXPECT_FALSE(second.notes.empty());
  EXPECT_EQ(departure(second, first.winner->config), Departure::failed);
}

TEST_F(SessionTest, StoppingKeepsEveryTrialAndStoresNoWinner) {
  observer_.stop_after_ = 7;
  const auto result = tune_problem("60");
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(result.winner);
  EXPECT_EQ(result.trials.size(), 7U);
  const auto trials = db_.trials(result.id);
  ASSERT_EQ(trials.size(), 8U) << "the next one was running";
  EXPECT_EQ(trials.back().phase, TrialPhase::lost);
  EXPECT_EQ(db_.counts().winners, 0);
}

// A worker that is stopped while a kernel runs throws. The candidate has not failed.
TEST_F(SessionTest, AStopWhileACandidateRunsIsNoFailureOfTheCandidate) {
  evaluator_.interrupts_ = [this, tried = 0](const Config&) mutable {
    observer_.stop_ = ++tried == 6;
    return observer_.stop_.load();
  };
  const auto result = tune_problem("60");
  EXPECT_TRUE(result.interrupted);
  EXPECT_FALSE(result.winner);
  const auto sessions = db_.sessions();
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0].outcome, "interrupted");
  const auto trials = db_.trials(sessions[0].id);
  EXPECT_EQ(trials.size(), 5U);
  for (const auto& trial : trials) EXPECT_TRUE(trial.ok()) << trial.message;
}

TEST_F(SessionTest, AStopAfterTheWinnerIsCertifiedKeepsIt) {
  evaluator_.before_peaks_ = [this] {
    observer_.stop_ = true;
    throw Error(Failure{Status::interrupted, "interrupted", {}});
  };
  const auto result = tune_problem("20");
  EXPECT_FALSE(result.interrupted);
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(db_.counts().winners, 1);
  EXPECT_EQ(db_.sessions()[0].outcome, "done");
}

// Otherwise such a run could not be distinguished from a running one, and its candidate would be
// unknown.
TEST_F(SessionTest, AnErrorLeavesTheCandidateItEndedInAndAFailedSession) {
  int left = 5;
  Config last;
  evaluator_.dies = [&](const Config& config) {
    last = config;
    return --left == 0;
  };
  EXPECT_THROW(tune_problem(), Error);
  const auto sessions = db_.sessions();
  ASSERT_EQ(sessions.size(), 1U);
  EXPECT_EQ(sessions[0].outcome, "failed");
  const auto trials = db_.trials(sessions[0].id);
  ASSERT_EQ(trials.size(), 5U);
  EXPECT_EQ(trials.back().config, last);
  EXPECT_EQ(trials.back().failure, Status::timeout);
  EXPECT_EQ(trials.back().message, "evaluating: planted");
}

TEST_F(SessionTest, WhatAKilledProcessHadBegunIsRecordedBesideItsTrial) {
  evaluator_.is_killed = [&](const Config& config) { return config == default_config(); };
  const auto result = tune_problem("6");
  ASSERT_TRUE(result.winner);
  const auto trials = db_.trials(result.id);
  const auto crashed = std::find_if(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.failure == Status::crash;
  });
  ASSERT_NE(crashed, trials.end());
  EXPECT_EQ(crashed->config, default_config());
  EXPECT_EQ(trials.size(), result.trials.size() + 1);
  const auto note = default_config().text() + ": evaluating: planted";
  EXPECT_EQ(std::count(result.notes.begin(), result.notes.end(), note), 1);
}

TEST_F(SessionTest, ATrialAndItsWinnerCarryTheFiguresOfTheirKernels) {
  const auto result = tune_problem("10");
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(result.winner->kernels, evaluator_.kernels_of(result.winner->config));
  for (const auto& trial : db_.trials(result.id)) {
    EXPECT_EQ(trial.kernels, evaluator_.kernels_of(trial.config));
  }
}

TEST_F(SessionTest, SpillsAreRejectedOnlyWhenAskedForAndNeverTheDefault) {
  const auto spills = [&](const Config& config) {
    return evaluator_.kernels_of(config)[0].statistics.spills();
  };
  ASSERT_TRUE(spills(default_config()));
  tune_problem("30");
  const auto tolerant = evaluator_.rejected_;
  EXPECT_TRUE(tolerant.empty());
  evaluator_.evaluated_.clear();
  reject_spills_ = true;
  const auto result = tune_problem("60");
  EXPECT_FALSE(evaluator_.rejected_.empty());
  for (const auto& trial : result.trials) {
    const bool expected = spills(trial.config) && trial.config != default_config();
    EXPECT_EQ(trial.failure == Status::constraints, expected) << trial.config.text();
  }
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default || !spills(result.winner->config));
}

TEST_F(SessionTest, AnEmulatorFarFromItsRooflineIsSearchedOnASmallerProblem) {
  evaluator_.speed = 1e-4;  // the ceilings predict ten thousand times more
  const Problem large = Problem::parse("gemm dtype=f32 out=f32 m=2048 n=2048 k=4096").value();
  const auto result = tune_problem("20", &large);
  ASSERT_TRUE(result.stand_in);
  ASSERT_TRUE(result.winner);
  EXPECT_EQ(result.notes.size(), 1U);  // reported once
}

TEST_F(SessionTest, PeaksAreMeasuredOnceForADriverAfterTheTrials) {
  std::size_t trials_before = 0;
  evaluator_.before_peaks_ = [&] {
    for (const auto& [config, times] : evaluator_.evaluated_) trials_before += times > 0 ? 1 : 0;
  };
  const auto result = tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 2);
  EXPECT_GE(trials_before, 5U);
  ASSERT_TRUE(result.winner);
  EXPECT_GT(result.winner->roofline, 0);
  tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 2);
  evaluator_.info_.driver = "fake 2.0";
  tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 4);
}

TEST_F(SessionTest, PeaksThatTheProblemDoesNotNeedAreMeasuredWhileTheBudgetLasts) {
  for (const DType type : {DType::f16, DType::bf16}) {
    evaluator_.info_.matrix_operations.push_back({.input = type, .m = 16, .n = 16, .k = 16});
  }
  evaluator_.before_peaks_ = [] { std::this_thread::sleep_for(std::chrono::milliseconds(60)); };
  const auto result = tune_problem("0.05s");
  EXPECT_EQ(evaluator_.ceilings_measured_, 2);
  ASSERT_TRUE(result.winner);
  EXPECT_GT(result.winner->roofline, 0);
  tune_problem("5");
  EXPECT_EQ(evaluator_.ceilings_measured_, 4);
}

TEST_F(SessionTest, ASlowDeviceIsSearchedOnAStandInAndConfirmedAtFullSize) {
  evaluator_.fma_gflops_ = 20;  // a 4096³ GEMM would take seconds
  const Problem large = Problem::parse("gemm dtype=f32 out=f32 m=4096 n=4096 k=4096").value();
  const auto result = tune_problem("40", &large);
  ASSERT_TRUE(result.stand_in);
  EXPECT_FALSE(result.notes.empty());
  ASSERT_TRUE(result.winner);
  const auto& keys = evaluator_.problems_;
  const auto full = std::count(keys.begin(), keys.end(), large.key());
  EXPECT_GE(full, 2);  // at least the default and the winner
  EXPECT_LE(full, 6);
  const Work small = built_in("gemm").work(result.stand_in->problem);
  EXPECT_NEAR(result.winner->measurement.median_us / 1e6, result.work.flops / 20e9 * 2, 5);
  EXPECT_LT(small.flops, result.work.flops / 10);
}

TEST_F(SessionTest, RoundsAreLimited) {
  evaluator_.noise = 0.5;
  EXPECT_GE(tune_problem("20").winner->rounds, 60);
  rounds_ = 5;
  EXPECT_LE(tune_problem("20").winner->rounds, 4 * 5);
}

/// Rounds that are dropped measured nothing, so that they do not count as some of the few.
TEST_F(SessionTest, FewRoundsAreTakenAfterThoseOfADriftingDevice) {
  rounds_ = 3;
  evaluator_.drifting_rounds_ = 20;
  const auto result = tune_problem("20");
  ASSERT_TRUE(result.winner) << result.notes.back();
  EXPECT_GE(result.winner->rounds, 3);
  EXPECT_EQ(result.winner->measurement.dropped, 20);
  evaluator_.drifting_rounds_ = 1 << 20;
  EXPECT_FALSE(tune_problem("20").winner) << "it drifts in every round";
}

TEST_F(SessionTest, CandidatesAreCompiledAhead) {
  tune_problem("20");
  EXPECT_EQ(evaluator_.prepared_, 19U);  // all except the default, which is timed before the search
}

TEST_F(SessionTest, ABudgetOfOneTrialStillGivesAnAnswer) {
  const auto result = tune_problem("1");
  ASSERT_TRUE(result.winner);
  EXPECT_TRUE(result.winner->is_default);
}

}  // namespace
}  // namespace greta::test::session_test
