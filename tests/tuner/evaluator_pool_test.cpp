// Protects: evaluator pools of any size. Every candidate is returned exactly once, cards work
// concurrently, the candidates of a lost card are neither lost nor evaluated twice, and a session
// on several cards records the same results as on one.

#include "tuner/evaluate/evaluator_pool.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <set>
#include <thread>

#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tests/tuner/silent_observer.hpp"
#include "tuner/replay/replay_evaluator.hpp"
#include "tuner/session/session.hpp"

namespace greta::test::evaluator_pool_test {
namespace {

const Problem problem = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();

/// A session on a pool of these evaluators, and the number of trials that it stored.
struct Tuned {
  Tuned(const std::vector<Evaluator*>& members, const Problem& problem, int trials) {
    const TemporaryFolder folder;
    TunedDb db = TunedDb::open(folder / "tuned.db", TunedDb::Mode::read_write);
    SilentObserver observer;
    SessionOptions options;
    options.budget = Budget::trials_of(trials);
    EvaluatorPool pool(members);
    result = tune(pool, db, problem, options, observer, observer.stop_);
    stored = db.counts().trials;
  }

  SessionResult result;
  std::int64_t stored = 0;
};

class EvaluatorPoolTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  EvaluatorPoolTest() : fakes_(GetParam()) {
    for (FakeEvaluator& fake : fakes_) {
      fake.info_.index = static_cast<int>(members_.size());
      members_.push_back(&fake);
    }
    const Space space = built_in("gemm").space(problem, fakes_.front().device());
    std::mt19937_64 random(5);
    while (configs_.size() < 60) configs_.insert(space.sample(random));
  }
  /// Evaluates all configurations with the pool and returns the results.
  std::vector<Evaluated> evaluate_all(EvaluatorPool& pool) {
    std::vector<Evaluated> all;
    auto config = configs_.begin();
    while (config != configs_.end() || pool.in_flight() > 0) {
      while (config != configs_.end() && pool.free() > 0) pool.evaluate(problem, *config++, {});
      all.push_back(pool.next());
    }
    return all;
  }

  std::vector<FakeEvaluator> fakes_;
  std::vector<Evaluator*> members_;
  std::set<Config> configs_;
};

TEST_P(EvaluatorPoolTest, WithoutMembersItFails) {
  EvaluatorPool pool(members_);
  while (pool.size() > 0) pool.retire_lead();
  EXPECT_THROW(pool.free(), Error);
  EXPECT_THROW(pool.evaluate(problem, *configs_.begin(), {}), Error);
}

TEST_P(EvaluatorPoolTest, EachCandidateComesBackOnce) {
  EvaluatorPool pool(members_);
  std::multiset<Config> seen;
  for (const Evaluated& evaluated : evaluate_all(pool)) {
    EXPECT_TRUE(evaluated.trial.ok());
    seen.insert(evaluated.trial.config);
  }
  EXPECT_EQ(seen, std::multiset<Config>(configs_.begin(), configs_.end()));
  std::size_t prepared = 0;
  for (const FakeEvaluator& fake : fakes_) prepared += fake.prepared_;
  EXPECT_EQ(prepared, configs_.size());
}

TEST_P(EvaluatorPoolTest, WhatIsCompiledDoesNotWaitForWhatIsNot) {
  for (FakeEvaluator& fake : fakes_) {
    fake.ready = [](const std::vector<Config>& announced) { return announced.size() - 1; };
  }
  EvaluatorPool pool(members_);
  std::vector<Config> seen;
  for (const Evaluated& evaluated : evaluate_all(pool)) seen.push_back(evaluated.trial.config);
  // A member of several may begin before more than one candidate is queued.
  EXPECT_TRUE(members_.size() > 1 || seen.front() != *configs_.begin());
  EXPECT_EQ(std::set<Config>(seen.begin(), seen.end()), configs_);
  EXPECT_EQ(seen.size(), configs_.size());
}

TEST_P(EvaluatorPoolTest, MembersWorkAtTheSameTime) {
  std::barrier all(static_cast<std::ptrdiff_t>(members_.size()));
  for (FakeEvaluator& fake : fakes_) {
    fake.lookahead_ = 1;
    fake.fails = [&all, first = true](const Config&) mutable {
      if (std::exchange(first, false)) all.arrive_and_wait();  // hangs unless concurrent
      return std::optional<Status>{};
    };
  }
  EvaluatorPool pool(members_);
  EXPECT_EQ(pool.free(), static_cast<int>(members_.size()));
  EXPECT_EQ(evaluate_all(pool).size(), configs_.size());
}

/// A pool of one member with this lookahead, whose evaluator counts the candidates that it began.
struct PoolOfOne {
  explicit PoolOfOne(int lookahead) {
    fake.lookahead_ = lookahead;
    fake.fails = [this](const Config&) {
      ++begun;
      begun.notify_all();
      return std::optional<Status>{};
    };
    std::mt19937_64 random(5);
    const Space space = built_in("gemm").space(problem, fake.device());
    while (configs.size() < 8) configs.insert(space.sample(random));
  }
  void wait_for(int count) {
    for (int seen = begun; seen < count; seen = begun) begun.wait(seen);
  }

  FakeEvaluator fake;
  std::atomic<int> begun = 0;
  std::set<Config> configs;
};

TEST(PoolOfOneMember, RunsOneCandidateWhileTheCallerHandlesAnother) {
  PoolOfOne one(3);
  EvaluatorPool pool({&one.fake});
  auto config = one.configs.begin();
  while (pool.free() > 0) pool.evaluate(problem, *config++, {});
  EXPECT_EQ(pool.in_flight(), 3U);
  EXPECT_EQ(one.begun, 0) << "it begins in next()";
  pool.next();
  one.wait_for(2);
  EXPECT_EQ(pool.free(), 1) << "a result that was not fetched takes its place";
  pool.evaluate(problem, *config++, {});
  pool.next();
  one.wait_for(3);
  pool.cancel();
  while (pool.in_flight() > 0) pool.next();
  EXPECT_EQ(one.begun, 3) << "one candidate ahead of next() at most";
  pool.evaluate(problem, *config++, {});
  EXPECT_EQ(pool.free(), 2);
  pool.next();
  EXPECT_EQ(one.begun, 4);
}

// The limits of a candidate say what is worth measuring. They must not depend on threads.
TEST(PoolOfOneMember, LimitsAreThoseOfTheResultBeforeTheLast) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    PoolOfOne one(4);
    std::vector<double> best_us;
    one.fake.limits_seen = [&](const TrialLimits& limits) { best_us.push_back(limits.best_us); };
    EvaluatorPool pool({&one.fake});
    auto config = one.configs.begin();
    for (int told = 0; told < 8; ++told) {
      while (pool.free() > 0 && config != one.configs.end()) pool.evaluate(problem, *config++, {});
      pool.next();
      TrialLimits limits;
      limits.best_us = told + 1;
      pool.set_limits(limits);
    }
    EXPECT_EQ(best_us, (std::vector<double>{0, 0, 1, 2, 3, 4, 5, 6}));
  }
}

TEST(PoolOfOneMember, WithoutLookaheadRunsInNext) {
  PoolOfOne one(1);
  std::thread::id thread;
  one.fake.throws_ = [&thread] { thread = std::this_thread::get_id(); };
  EvaluatorPool pool({&one.fake});
  pool.evaluate(problem, *one.configs.begin(), {});
  pool.next();
  EXPECT_EQ(thread, std::this_thread::get_id());
}

TEST(PoolOfOneMember, AnErrorEndsItsQueue) {
  PoolOfOne one(4);
  one.fake.throws_ = [] { throw Error(Failure{Status::out_of_memory, "planted", {}}); };
  EvaluatorPool pool({&one.fake});
  auto config = one.configs.begin();
  while (pool.free() > 0) pool.evaluate(problem, *config++, {});
  EXPECT_THROW(pool.next(), Error);
  EXPECT_EQ(pool.in_flight(), 0U);
}

class PoolOfSeveral : public EvaluatorPoolTest {};

TEST_P(PoolOfSeveral, ALostMemberLeavesTheRestToOthers) {
  fakes_.front().dies = [](const Config&) { return true; };
  EvaluatorPool pool(members_);
  std::multiset<Config> seen;
  std::vector<Evaluated> retired;
  for (Evaluated& evaluated : evaluate_all(pool)) {
    seen.insert(evaluated.trial.config);
    EXPECT_EQ(evaluated.trial.ok(), evaluated.retired.empty());
    if (!evaluated.retired.empty()) retired.push_back(std::move(evaluated));
  }
  EXPECT_EQ(seen, std::multiset<Config>(configs_.begin(), configs_.end()));
  ASSERT_EQ(retired.size(), 1U);
  EXPECT_EQ(retired[0].trial.failure, Status::timeout);
  EXPECT_EQ(retired[0].trial.message, "evaluating: planted");
  EXPECT_EQ(retired[0].retired, "vulkan:0: the device does not answer");
  EXPECT_EQ(pool.size(), members_.size() - 1);
  EXPECT_EQ(&pool.lead(), members_[1]);
}

TEST_P(EvaluatorPoolTest, TheLastMemberThatIsLostEndsIt) {
  for (FakeEvaluator& fake : fakes_) fake.dies = [](const Config&) { return true; };
  EvaluatorPool pool(members_);
  try {
    evaluate_all(pool);
    FAIL() << "it went on without a device";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::timeout);
  }
}

TEST_P(EvaluatorPoolTest, WhatIsCancelledIsNotEvaluated) {
  EvaluatorPool pool(members_);
  auto config = configs_.begin();
  while (config != configs_.end() && pool.free() > 0) pool.evaluate(problem, *config++, {});
  pool.cancel();
  std::size_t ended = 0;
  for (; pool.in_flight() > 0; ++ended) pool.next();
  std::size_t evaluated = 0;
  for (const FakeEvaluator& fake : fakes_) evaluated += fake.evaluated_.size();
  EXPECT_EQ(ended, evaluated);
  EXPECT_TRUE(members_.size() > 1 || ended == 0);  // a single member starts in next()
}

TEST_P(EvaluatorPoolTest, ASessionKeepsItsBudgetAndFindsAWinner) {
  const auto [result, stored] = Tuned(members_, problem, 80);
  ASSERT_TRUE(result.winner);
  EXPECT_GT(result.winner->speedup_low, 1);
  EXPECT_EQ(stored, static_cast<std::int64_t>(result.trials.size()));
  int evaluated = 0;
  for (const FakeEvaluator& fake : fakes_) {
    for (const auto& [config, times] : fake.evaluated_) evaluated += times;
  }
  EXPECT_EQ(evaluated, 80);
}

/// Tunes while one member is lost in its second trial, for which the others wait.
void expect_winner_without(FakeEvaluator& lost, std::vector<FakeEvaluator>& fakes,
                           const std::vector<Evaluator*>& members) {
  std::latch died(1);
  for (FakeEvaluator& fake : fakes) {
    fake.fails = [&died, tried = 0](const Config&) mutable {
      if (++tried > 1) died.wait();
      return std::optional<Status>{};
    };
  }
  lost.dies = [&died, tried = 0](const Config&) mutable {
    if (++tried == 2) died.count_down();
    return tried >= 2;
  };
  const auto [result, stored] = Tuned(members, problem, 80);
  ASSERT_TRUE(result.winner);
  ASSERT_FALSE(result.notes.empty());
  EXPECT_EQ(result.notes.front(),
            lost.device().id() + ": the device does not answer; the search continued without it");
  EXPECT_EQ(stored, static_cast<std::int64_t>(result.trials.size()));
}

TEST_P(PoolOfSeveral, ASessionGoesOnWithoutALostCard) {
  expect_winner_without(fakes_.back(), fakes_, members_);
}

// The lead evaluates the default before the search, and certifies after it: then another does.
TEST_P(PoolOfSeveral, ASessionGoesOnWithoutItsLead) {
  expect_winner_without(fakes_.front(), fakes_, members_);
}

INSTANTIATE_TEST_SUITE_P(Members, EvaluatorPoolTest, ::testing::Values(1, 2, 8),
                         [](const auto& members) { return std::to_string(members.param); });
INSTANTIATE_TEST_SUITE_P(Members, PoolOfSeveral, ::testing::Values(2, 8),
                         [](const auto& members) { return std::to_string(members.param); });

// The same search runs live or from a recording.
TEST(ReplayEvaluator, ASessionRunsOnARecording) {
  const auto load = [] {
    return Recording::load(GRETA_TEST_DATA "/replay/convolution__mi50.json").value();
  };
  ReplayEvaluator first(load()), second(load());
  for (const std::vector<Evaluator*>& members :
       {std::vector<Evaluator*>{&first}, std::vector<Evaluator*>{&first, &second}}) {
    const SessionResult result = Tuned(members, first.problem(), 200).result;
    ASSERT_TRUE(result.winner);
    // The order of several members' answers differs from run to run, and with it the search.
    const double slower = members.size() == 1 ? 1.1 : 1.3;
    EXPECT_LT(result.winner->measurement.median_us, slower * first.recording().optimum_us());
    EXPECT_EQ(result.winner->measurement.median_us,
              first.recording().trial(result.winner->config).measurement.median_us);
    EXPECT_EQ(result.space_count, first.recording().space().count());
  }
}

}  // namespace
}  // namespace greta::test::evaluator_pool_test
