// Protects: which winner counts as the nearest, its recorded regret on this problem, and that a
// regret belongs to one result.
#include "db/regret.hpp"

#include <gtest/gtest.h>

#include "kernels/chains/chains.hpp"
#include "tests/catalog.hpp"
#include "tests/db/fixture.hpp"

namespace greta::test::regret_test {
namespace {

Problem gemm(std::int64_t m, std::int64_t n, std::int64_t k) {
  return {"gemm", DType::f32, DType::f32, {}, {{"m", m}, {"n", n}, {"k", k}}};
}

DeviceInfo device() {
  auto info = sample_device();
  info.language = Language::glsl;
  return info;
}

class RegretTest : public ::testing::Test {
 protected:
  /// Adds the winner `config` of a session with the times `trials` in microseconds.
  void add(const Problem& problem, const Config& config,
           const std::vector<std::pair<Config, double>>& trials = {}) {
    SessionRecord session = sample_session();
    session.device = device();
    session.problem = problem;
    session.provenance.driver = driver_;
    const auto id = db_.begin_session(session);
    for (const auto& [tried, us] : trials) {
      Trial trial = sample_trial("x");
      trial.config = tried;
      trial.problem_key = problem.key();
      trial.measurement.median_us = us;
      db_.add_trial(id, trial);
    }
    Winner winner = sample_winner();
    winner.config = config;
    db_.set_winner(id, winner);
  }
  const StoredWinner* nearest(const Problem& problem) {
    winners_ = db_.winners();
    return nearest_neighbour(catalog(), of(problem), winners_);
  }
  const StoredWinner& of(const Problem& problem) {
    return *std::find_if(winners_.begin(), winners_.end(),
                         [&](const StoredWinner& one) { return one.problem == problem; });
  }

  TemporaryFolder folder_;
  TunedDb db_ = TunedDb::open(folder_ / "t.db", TunedDb::Mode::read_write);
  std::vector<StoredWinner> winners_;
  std::string driver_ = "driver 1";
  Config a_ = built_in("gemm").default_config(gemm(512, 512, 512), device());
  Config b_ = built_in("gemm").default_config(gemm(4096, 4096, 4096), device());
};

TEST_F(RegretTest, TheNearestValidNeighbourCounts) {
  add(gemm(512, 512, 512), a_);
  winners_ = db_.winners();
  EXPECT_EQ(nearest(gemm(512, 512, 512)), nullptr);
  add(gemm(4096, 512, 512), a_);
  add(gemm(1024, 512, 512), a_);
  EXPECT_EQ(nearest(gemm(512, 512, 512))->problem, gemm(1024, 512, 512));
  add(gemm(768, 512, 512), {"tiled", {{"BM", 3}}});  // nearer, but not valid here
  EXPECT_EQ(nearest(gemm(512, 512, 512))->problem, gemm(1024, 512, 512));
}

TEST_F(RegretTest, ComesFromTheWinnerItsTiesOrTrials) {
  ASSERT_NE(a_, b_);
  add(gemm(512, 512, 512), a_, {{a_, 10}, {b_, 13}});
  add(gemm(1024, 512, 512), b_);
  nearest(gemm(512, 512, 512));
  auto regret = recorded_regret(catalog(), db_, of(gemm(512, 512, 512)), of(gemm(1024, 512, 512)));
  ASSERT_TRUE(regret);
  EXPECT_DOUBLE_EQ(regret->ratio, 1.3);
  EXPECT_EQ(regret->source, Regret::Source::trials);
  EXPECT_EQ(regret->neighbour, "m=1024 n=512 k=512");
  // Nothing is recorded for the opposite direction.
  EXPECT_FALSE(recorded_regret(catalog(), db_, of(gemm(1024, 512, 512)), of(gemm(512, 512, 512))));

  auto tied = of(gemm(512, 512, 512));
  tied.winner.ties = {{b_, 1.02}};
  EXPECT_EQ(recorded_regret(catalog(), db_, tied, of(gemm(1024, 512, 512)))->source,
            Regret::Source::tie);
  tied.winner.config = b_;
  EXPECT_EQ(recorded_regret(catalog(), db_, tied, of(gemm(1024, 512, 512)))->source,
            Regret::Source::same);
}

TEST_F(RegretTest, ANeighbourThatIsFarIsNone) {
  add(gemm(512, 512, 512), a_);
  add(gemm(2048, 512, 512), a_);
  EXPECT_EQ(nearest(gemm(512, 512, 512)), nullptr);
}

TEST_F(RegretTest, WhereTheDefaultWonItIsTheDefaultHere) {
  add(gemm(512, 512, 512), b_, {{b_, 10}});
  add(gemm(1024, 512, 512), {"tiled", {{"BM", 3}}});  // not valid here, unlike the default
  nearest(gemm(512, 512, 512));
  auto result = of(gemm(512, 512, 512)), neighbour = of(gemm(1024, 512, 512));
  EXPECT_EQ(carried_over(catalog(), neighbour.winner, result.problem, device()),
            neighbour.winner.config);
  EXPECT_FALSE(serves(catalog(), neighbour, result));
  neighbour.winner.is_default = true;
  EXPECT_EQ(carried_over(catalog(), neighbour.winner, result.problem, device()), a_);
  EXPECT_TRUE(serves(catalog(), neighbour, result));
  result.winner.is_default = false;
  result.winner.speedup = 1.2;  // over the default, which the neighbour stands for
  const auto regret = recorded_regret(catalog(), db_, result, neighbour);
  ASSERT_TRUE(regret);
  EXPECT_EQ(regret->ratio, 1.2);
  EXPECT_EQ(regret->source, Regret::Source::measured);
}

TEST_F(RegretTest, OnlyWhatIsNeverPredictedImpliesTheDefaultByALittleGain) {
  Winner winner;
  winner.default_us = 20;
  winner.speedup_low = 1.04;
  const Catalog all = with_chains(catalog());
  for (const auto& [name, implies] :
       {std::pair{"softmax", true}, {"rope", true}, {"gemm", false}, {"gate_up", false}}) {
    ASSERT_NE(all.find(name), nullptr) << name;
    EXPECT_EQ(implies_default(*all.find(name), winner), implies) << name;
  }
  winner.speedup_low = least_carried_speedup;
  EXPECT_FALSE(implies_default(*all.find("softmax"), winner));
  winner.is_default = true;
  EXPECT_TRUE(implies_default(*all.find("gemm"), winner));
}

TEST_F(RegretTest, TimesOfOtherCircumstancesDoNotCount) {
  add(gemm(512, 512, 512), a_, {{b_, 13}});
  driver_ = "driver 2";
  add(gemm(512, 512, 512), a_, {{a_, 10}});
  add(gemm(1024, 512, 512), b_);
  nearest(gemm(512, 512, 512));
  EXPECT_FALSE(recorded_regret(catalog(), db_, of(gemm(512, 512, 512)), of(gemm(1024, 512, 512))));
}

TEST_F(RegretTest, IsStoredWithTheResultAndGoesWithIt) {
  add(gemm(512, 512, 512), a_);
  auto result = db_.winners().front();
  result.regret = Regret{"m=1 n=2 k=3", 1.25, Regret::Source::measured};
  db_.set_regrets({result});
  ASSERT_TRUE(db_.winners().front().regret);
  EXPECT_EQ(db_.winners().front().regret->ratio, 1.25);
  EXPECT_EQ(db_.winners().front().session, 1);
  EXPECT_TRUE(db_.check().empty());
  result.regret.reset();
  db_.set_regrets({result});
  EXPECT_FALSE(db_.winners().front().regret);
  result.provenance.driver = "another";
  EXPECT_THROW(db_.set_regrets({result}), Error);
}

}  // namespace
}  // namespace greta::test::regret_test
