// Protects: a pinned answer keeps its configuration, whatever is stored, written, merged or
// removed. Runs that did not finish are found again, but not by a process beside the one that runs
// them.

#include <gtest/gtest.h>

#include "db/merge.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::pin_test {
namespace {

using Mode = TunedDb::Mode;

class Pinned : public ::testing::Test {
 protected:
  void SetUp() override { store(sample_winner()); }
  bool store(const Winner& winner) {
    auto session = sample_session();
    session.provenance.started_utc = "2099-01-01T00:00:00Z";
    session.provenance.driver = std::to_string(++drivers_);
    return db_.set_winner(db_.begin_session(session), winner);
  }
  static Winner other() {
    Winner winner = sample_winner();
    winner.config = {"other", {{"X", 1}}};
    winner.measurement.median_us /= 2;
    return winner;
  }
  Config answer() const {
    return db_.find_winner(question_.device_fingerprint, question_.problem_key, question_.cold)
        ->winner.config;
  }

  TemporaryFolder folder_;
  TunedDb db_ = TunedDb::open(folder_ / "t.db", Mode::read_write);
  Question question_{sample_problem().key(), sample_device().fingerprint(), sample_winner().cold};
  int drivers_ = 0;
};

TEST_F(Pinned, NothingButUnpinChangesTheAnswer) {
  const Config before = answer();
  db_.pin(question_);
  EXPECT_EQ(db_.pinned(question_), before);
  EXPECT_FALSE(store(other()));
  EXPECT_EQ(answer(), before);
  EXPECT_TRUE(store(sample_winner())) << "a new certificate of the same configuration";
  auto theirs = db_.contents();
  for (auto& result : theirs.results) result.winner = other();
  db_.write(theirs);
  EXPECT_EQ(answer(), before);
  const auto merged = db_.merge(theirs);
  EXPECT_EQ(merged.report.pinned, theirs.results.size());
  EXPECT_EQ(answer(), before);
  PruneRequest request;
  request.winners = db_.results();
  EXPECT_EQ(db_.prune(request, false).winners, 0);
  EXPECT_EQ(answer(), before);
  ASSERT_EQ(db_.pins().size(), 1U);
  EXPECT_TRUE(db_.check().empty());
  EXPECT_TRUE(db_.unpin(question_));
  EXPECT_FALSE(db_.unpin(question_));
  EXPECT_TRUE(store(other()));
  EXPECT_EQ(answer(), other().config);
}

TEST_F(Pinned, OnlyAnAnswerCanBePinned) {
  Question unknown = question_;
  unknown.cold = !unknown.cold;
  EXPECT_NE(error_of([&] { db_.pin(unknown); }).find("to pin"), std::string::npos);
}

TEST(Runs, AnUnfinishedRunIsFoundUnlessAnotherProcessHasIt) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  auto first = TunedDb::open(file, Mode::read_write);
  const auto id = first.begin_run({"request", 7, "tune", "then"});
  {
    auto beside = TunedDb::open(file, Mode::read_write);
    EXPECT_FALSE(beside.take_unfinished_run("request", std::nullopt)) << "it is running";
  }
  { const auto gone = std::move(first); }
  EXPECT_FALSE(std::filesystem::exists(file.string() + "-runs"));
  auto next = TunedDb::open(file, Mode::read_write);
  EXPECT_FALSE(next.take_unfinished_run("another", std::nullopt));
  EXPECT_FALSE(next.take_unfinished_run("request", 8));
  const auto found = next.take_unfinished_run("request", 7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->id, id);
  EXPECT_EQ(found->seed, 7U);
  next.end_run(id);
  EXPECT_FALSE(next.take_unfinished_run("request", std::nullopt)) << "it finished";
}

TEST(Runs, AKilledProcessReleasesItsRun) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  const auto child = start_child([&] {
    auto db = TunedDb::open(file, Mode::read_write);
    db.begin_run({"request", 7, "tune", "then"});
    std::abort();
  });
  EXPECT_FALSE(succeeded(child));
  auto db = TunedDb::open(file, Mode::read_write);
  EXPECT_TRUE(db.take_unfinished_run("request", std::nullopt));
}

TEST(Runs, ASessionKeepsWhatItsSearchWasGiven) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  auto session = sample_session();
  session.run = db.begin_run({"request", 7, "tune", "then"});
  const Question question{session.problem.key(), session.device.fingerprint(), session.cold};
  EXPECT_FALSE(db.find_session(session.run, question));
  const auto id = db.begin_session(session);
  EXPECT_FALSE(db.find_session(session.run, question)->plan);
  db.set_plan(id, {{sample_winner().config}, "gemm m=1", 0.5});
  Trial trial = sample_trial("a");
  trial.phase = TrialPhase::search;
  trial.asks = 3;
  trial.elapsed_s = 1.5;
  db.add_trial(id, trial);
  db.end_session(id, "interrupted");
  EXPECT_EQ(db.find_session(session.run, question)->outcome, "interrupted");
  db.reopen_session(id);
  const auto found = db.find_session(session.run, question);
  EXPECT_EQ(found->id, id);
  EXPECT_FALSE(found->outcome);
  ASSERT_TRUE(found->plan);
  EXPECT_EQ(found->plan->first, std::vector<Config>{sample_winner().config});
  EXPECT_EQ(found->plan->stand_in, "gemm m=1");
  EXPECT_EQ(found->plan->stand_in_launch_s, 0.5);
  const auto read = db.trials(id).at(0);
  EXPECT_EQ(read.phase, TrialPhase::search);
  EXPECT_EQ(read.asks, 3);
  EXPECT_EQ(read.elapsed_s, 1.5);
  EXPECT_TRUE(db.check().empty());
}

}  // namespace
}  // namespace greta::test::pin_test
