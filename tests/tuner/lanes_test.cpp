// Protects: a run on several cards. Every problem is tuned once, on one card at a time and on all
// cards at the same time; a card that fails leaves, and its problem is tuned elsewhere; errors that
// are not of a card end the run; cards that measure differently do not share a search.

#include "tuner/tuning/lanes.hpp"

#include <gtest/gtest.h>

#include <barrier>
#include <chrono>
#include <latch>
#include <list>
#include <set>
#include <thread>

#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tuner/tuning/card_control.hpp"
#include "tuner/tuning/expected_cost.hpp"

namespace greta::test::lanes_test {
namespace {

Problem gemm(int m) {
  return Problem::parse("gemm dtype=f32 out=f32 m=" + std::to_string(m) + " n=512 k=512").value();
}

/// Counts events, and checks that they come one at a time.
class Events final : public TunerObserver {
 public:
  void on_run(const RunStart& run) override { cards_ = run.cards.size(); }
  void on_session(const SessionStart& session) override {
    const std::lock_guard lock(alone());
    sessions_.insert(session.problem.key());
    shared_ = std::max(shared_, session.cards.size());
  }
  void on_trial(const SessionResult&, const Budget&) override {
    const std::lock_guard lock(alone());
    ++trials_;
  }
  void on_session_end(const SessionResult& result) override {
    const std::lock_guard lock(alone());
    by_device_.insert(result.device.id());
  }
  void on_card_lost(const std::string& why) override {
    const std::lock_guard lock(alone());
    lost_.push_back(why);
  }

  std::size_t cards_ = 0, shared_ = 0;
  int trials_ = 0;
  bool overlapped_ = false;
  std::multiset<std::string> sessions_, by_device_;
  std::vector<std::string> lost_;

 private:
  std::mutex& alone() {
    if (mutex_.try_lock()) {
      mutex_.unlock();
    } else {
      overlapped_ = true;
    }
    return mutex_;
  }
  std::mutex mutex_;
};

class LanesTest : public ::testing::Test {
 protected:
  LanesTest() {
    options_.catalog = test::catalog();
    options_.budget = Budget::trials_of(12);
    options_.name = "test";
  }
  FakeEvaluator& add_card() {
    FakeEvaluator& card = cards_.emplace_back();
    card.info_.index = static_cast<int>(cards_.size()) - 1;
    card.info_.card = {"uuid" + std::to_string(cards_.size()), ""};
    return card;
  }
  void add_cards(int count) {
    for (int i = 0; i < count; ++i) add_card();
  }
  void add_tasks(int count) {
    for (int i = 0; i < count; ++i) tasks_.push_back({.problem = gemm(256 + 64 * i)});
  }
  Result<void> run() {
    std::vector<Evaluator*> evaluators;
    for (FakeEvaluator& card : cards_) evaluators.push_back(&card);
    Lanes lanes(evaluators, tasks_.size(),
                {options_, 7, "2026-01-01T00:00:00Z", db_, events_, stop_});
    const auto caller = std::this_thread::get_id();
    return lanes.run(tasks_, [&](const TuningTask& task, const TaskResult& result) {
      EXPECT_EQ(std::this_thread::get_id(), caller);
      results_.emplace(task.problem.key(), result);
      if (when_done_) when_done_();
    });
  }
  /// Checks that each task has one result with a winner, and that the database has it.
  void expect_all_won() {
    EXPECT_EQ(results_.size(), tasks_.size());
    for (const TuningTask& task : tasks_) {
      ASSERT_EQ(results_.count(task.problem.key()), 1U);
      EXPECT_TRUE(results_.find(task.problem.key())->second.won());
      EXPECT_TRUE(db_.find_winner(cards_.front().info_.fingerprint(), task.problem.key(), true));
    }
    EXPECT_FALSE(events_.overlapped_);
    EXPECT_TRUE(db_.check().empty());
  }

  TemporaryFolder folder_;
  TunedDb db_ = TunedDb::open(folder_ / "tuned.db", TunedDb::Mode::read_write);
  TunerOptions options_;
  std::list<FakeEvaluator> cards_;
  std::vector<TuningTask> tasks_;
  Events events_;
  std::atomic<bool> stop_ = false;
  std::multimap<std::string, TaskResult> results_;
  std::function<void()> when_done_;
};

TEST_F(LanesTest, AfterTheDeadlineNoTaskIsBegunButTheFirst) {
  add_cards(1);
  add_tasks(3);
  options_.provisional = true;
  options_.deadline = std::chrono::steady_clock::now();
  ASSERT_TRUE(run());
  EXPECT_EQ(results_.size(), 1U);
  EXPECT_EQ(results_.count(tasks_.front().problem.key()), 1U);
}

TEST_F(LanesTest, TasksShareTheTimeUntilTheDeadline) {
  add_cards(1);
  add_tasks(2);
  options_.budget = Budget::seconds(1e6);  // without the deadline, this test hangs
  for (TuningTask& task : tasks_) task.share = 0.5;
  options_.provisional = true;
  options_.deadline = std::chrono::steady_clock::now() + std::chrono::seconds(7);
  ASSERT_TRUE(run());
  EXPECT_EQ(results_.size(), 2U);
}

TEST_F(LanesTest, ProblemsAreSpreadOverCardsThatWorkAtTheSameTime) {
  add_cards(4);
  add_tasks(13);
  std::barrier all(4);
  for (FakeEvaluator& card : cards_) {
    card.fails = [&all, first = true](const Config&) mutable {
      if (std::exchange(first, false)) all.arrive_and_wait();  // hangs unless all work at once
      return std::optional<Status>{};
    };
  }
  ASSERT_TRUE(run());
  expect_all_won();
  EXPECT_EQ(events_.cards_, 4U);
  EXPECT_EQ(events_.shared_, 1U);
  EXPECT_EQ(events_.sessions_.size(), 13U);
  for (const FakeEvaluator& card : cards_) EXPECT_GE(events_.by_device_.count(card.info_.id()), 1U);
  EXPECT_EQ(db_.counts().trials, events_.trials_);
  EXPECT_EQ(db_.counts().cards, 4);
}

TEST_F(LanesTest, TheMostExpensiveProblemIsFirstAndOneCardKeepsTheOrder) {
  add_cards(2);
  tasks_ = {{.problem = gemm(64)}, {.problem = gemm(128)}, {.problem = gemm(1 << 20)}};
  ASSERT_TRUE(run());
  const auto sessions = db_.sessions();
  EXPECT_EQ(sessions.size(), 3U);
  EXPECT_TRUE(sessions[0].problem == gemm(1 << 20) || sessions[1].problem == gemm(1 << 20));
  cards_.pop_back();
  ASSERT_TRUE(run());
  EXPECT_EQ(db_.sessions()[3].problem, gemm(64));
  EXPECT_EQ(db_.sessions()[5].problem, gemm(1 << 20));
}

TEST_F(LanesTest, ACardThatHangsLeavesAndItsProblemIsTunedElsewhere) {
  add_cards(2);
  add_tasks(6);
  cards_.back().dies = [tried = 0](const Config&) mutable { return ++tried == 5; };
  ASSERT_TRUE(run());
  expect_all_won();
  EXPECT_EQ(events_.lost_, std::vector<std::string>{"vulkan:1: the device does not answer"});
  int told = 0;
  for (const auto& [key, result] : results_) {
    for (const auto& note : result.sessions.front().notes) {
      told += note == "vulkan:1: the device does not answer; another card tuned the problem";
    }
  }
  EXPECT_EQ(told, 1);
  // The trial during which it failed is recorded in the session that it ended.
  int failed = 0;
  for (const auto& session : db_.sessions()) {
    if (session.outcome != "failed") continue;
    ++failed;
    EXPECT_EQ(db_.trials(session.id).back().failure, Status::timeout);
  }
  EXPECT_EQ(failed, 1);
  EXPECT_EQ(db_.sessions().size(), 7U);
}

TEST_F(LanesTest, AProblemThatCostTwoCardsIsGivenUp) {
  add_cards(4);
  add_tasks(8);
  const std::string bad = tasks_[3].problem.key();
  for (FakeEvaluator& card : cards_) {
    card.dies = [&card, bad](const Config&) { return card.evaluating_ == bad; };
  }
  ASSERT_TRUE(run());
  EXPECT_EQ(events_.lost_.size(), 2U);
  EXPECT_EQ(results_.size(), 8U);
  for (const auto& [key, result] : results_) {
    EXPECT_EQ(result.won(), key != bad);
    EXPECT_EQ(result.given_up.empty(), key != bad) << result.given_up;
  }
}

TEST_F(LanesTest, TheLastCardsErrorEndsTheRun) {
  add_cards(2);
  add_tasks(4);
  for (FakeEvaluator& card : cards_) card.dies = [](const Config&) { return true; };
  const auto done = run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.failure().status, Status::timeout);
}

TEST(Lane, HasNoCardsAfterNonePassedTheControlKernel) {
  const TemporaryFolder folder;
  TunedDb db = TunedDb::open(folder / "tuned.db", TunedDb::Mode::read_write);
  std::list<FakeEvaluator> fakes(2);
  std::vector<Evaluator*> cards;
  for (FakeEvaluator& fake : fakes) cards.push_back(&fake);
  TunerOptions options;
  TunerObserver observer;
  const std::atomic<bool> stop = false;
  Lane lane({cards}, {options, 7, "2026-01-01T00:00:00Z", db, observer, stop});
  EXPECT_EQ(lane.cards().size(), 2U);
  EXPECT_FALSE(lane.lose_card());
  EXPECT_TRUE(lane.cards().empty());
}

TEST_F(LanesTest, AnErrorThatIsNotOfACardEndsTheRunAndNoCardLeaves) {
  for (const int tasks : {1, 4}) {  // shared by both cards, and one on each
    SCOPED_TRACE(tasks);
    cards_.clear();
    tasks_.clear();
    add_cards(2);
    add_tasks(tasks);
    std::latch thrown(1);
    cards_.front().throws_ = [&thrown, tried = 0]() mutable {
      if (++tried > 1) thrown.wait();
    };
    cards_.back().throws_ = [&thrown, first = true]() mutable {
      if (std::exchange(first, false)) thrown.count_down();
      throw Error(Failure{Status::invalid_argument, "planted", {}});
    };
    const auto done = run();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.failure().message, "planted");
    EXPECT_TRUE(events_.lost_.empty());
  }
}

TEST_F(LanesTest, FewerProblemsThanCardsAreShared) {
  add_cards(4);
  add_tasks(2);
  for (FakeEvaluator& card : cards_) {  // slow enough that every card gets some
    card.throws_ = [] { std::this_thread::sleep_for(std::chrono::milliseconds(2)); };
  }
  options_.budget = Budget::trials_of(60);
  ASSERT_TRUE(run());
  expect_all_won();
  EXPECT_EQ(events_.shared_, 2U);
  for (const FakeEvaluator& card : cards_) EXPECT_GT(card.evaluated_.size(), 0U);
  EXPECT_NE(results_.begin()->second.sessions.front().notes.front().find("in turns: "),
            std::string::npos);
}

TEST_F(LanesTest, ACardThatIsSlowerDoesNotShareASearch) {
  add_cards(3);
  add_tasks(1);
  cards_.back().speed = 0.9;
  ASSERT_TRUE(run());
  expect_all_won();
  EXPECT_EQ(events_.shared_, 2U);
  EXPECT_TRUE(cards_.back().evaluated_.empty());
  const auto& notes = results_.begin()->second.sessions.front().notes;
  EXPECT_EQ(notes.at(1).find("vulkan:2 does not share the search: its time is 1.1"), 0U)
      << notes[1];
}

TEST_F(LanesTest, ACardThatFailsWhileItCertifiesIsReplaced) {
  add_cards(2);
  add_tasks(1);
  cards_.front().dies_in_rounds_after_ = 10;  // after the control kernel
  ASSERT_TRUE(run());
  expect_all_won();
  EXPECT_EQ(events_.lost_, std::vector<std::string>{"vulkan:0: the device does not answer"});
}

TEST_F(LanesTest, ADatabaseThatFailsEndsTheRun) {
  add_cards(2);
  add_tasks(40);
  when_done_ = [this] { std::filesystem::remove(folder_ / "tuned.db"); };
  const auto done = run();
  EXPECT_LT(results_.size(), 10U);
  EXPECT_TRUE(events_.lost_.empty());
  const bool told = std::any_of(results_.begin(), results_.end(), [](const auto& result) {
    return !result.second.not_stored().empty();
  });
  EXPECT_TRUE(told || !done);
  const std::string why = done ? "" : done.failure().message;
  EXPECT_TRUE(done || why.find("tuned.db: ") != std::string::npos) << why;
}

TEST_F(LanesTest, AStopEndsAllLanes) {
  add_cards(3);
  add_tasks(30);
  when_done_ = [this] { stop_ = true; };
  ASSERT_TRUE(run());
  EXPECT_LE(results_.size(), 9U);
}

// Two APIs of the same cards: each problem is tuned with both on one card, and compared.
TEST(MakeLanes, CardsOfSeveralApisAreInOneLane) {
  std::list<FakeEvaluator> evaluators(4);
  std::vector<Evaluator*> all;
  const char* const addresses[] = {"0000:01:00.0", "0000:02:00.0", "0000:02:00.0", "0000:01:00.0"};
  for (int i = 0; FakeEvaluator & one : evaluators) {
    one.info_.backend = i < 2 ? Api::hip : Api::vulkan;
    one.info_.index = i % 2;
    one.info_.card.pci_address = addresses[i++];
    all.push_back(&one);
  }
  const auto lanes = make_lanes(all, 10);
  ASSERT_EQ(lanes.size(), 2U);
  for (const LaneCards& lane : lanes) {
    ASSERT_EQ(lane.size(), 2U);
    EXPECT_EQ(lane[0].front()->device().card, lane[1].front()->device().card);
  }
  EXPECT_EQ(make_lanes(all, 1).size(), 1U);
  EXPECT_EQ(make_lanes({all[0], all[1], all[2]}, 10).size(), 1U);  // vulkan has only one card
}

TEST(Shards, AreBalancedAndCoverEachProblemOnce) {
  std::vector<double> costs;
  for (int i = 0; i < 100; ++i) costs.push_back(1 + i * i % 37);
  for (const std::size_t shards : {1U, 3U, 8U, 100U}) {
    const auto part = shards_of(costs, shards);
    std::vector<double> total(shards, 0);
    for (std::size_t i = 0; i < costs.size(); ++i) total.at(part[i]) += costs[i];
    EXPECT_EQ(part, shards_of(costs, shards));
    const auto [least, most] = std::minmax_element(total.begin(), total.end());
    EXPECT_GT(*least, 0);
    EXPECT_LE(*most - *least, 37);
  }
}

TEST(Shards, AnExpensiveProblemStandsForManyCheapOnes) {
  std::vector<double> costs(101, 1);
  costs[40] = 100;
  const auto part = shards_of(costs, 2);
  std::vector<double> total(2, 0);
  for (std::size_t i = 0; i < costs.size(); ++i) total.at(part[i]) += costs[i];
  EXPECT_EQ(total, (std::vector<double>{100, 100}));
}

TEST(Shards, LargerProblemsCostMore) {
  const Operation& operation = built_in("gemm");
  for (const char* budget : {"10s", "100", "5%"}) {
    const Budget is = Budget::parse(budget).value();
    EXPECT_LT(expected_cost_s(operation, gemm(64), is), expected_cost_s(operation, gemm(8192), is));
  }
}

}  // namespace
}  // namespace greta::test::lanes_test
