// Protects: a stale result remains valid only if all kernels compile to the same code. Otherwise it
// is timed again against the default, with the current driver and compiler.
#include "tuner/session/requalify.hpp"

#include <gtest/gtest.h>

#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tests/tuner/silent_observer.hpp"
#include "tuner/session/regret_rounds.hpp"

namespace greta::test::requalify_test {
namespace {

class Requalify : public ::testing::Test {
 protected:
  SessionOptions options(const std::string& date) {
    SessionOptions session;
    session.budget = Budget::parse("40").value();
    session.seed = 3;
    session.started_utc = date;
    return session;
  }
  StoredWinner tuned(const Problem& problem) {
    tune(evaluator_, db_, problem, options("2026-01-01T00:00:00Z"), observer_, observer_.stop_);
    return latest(problem);
  }
  StoredWinner latest(const Problem& problem) {
    return db_.find_winner(evaluator_.device().fingerprint(), problem.key(), true).value();
  }
  Requalification run(const StoredWinner& result) {
    return requalify(evaluator_, db_, result, options("2026-02-01T00:00:00Z"), observer_,
                     observer_.stop_);
  }

  test::TemporaryFolder folder_;
  Problem problem_ = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  FakeEvaluator evaluator_;
  TunedDb db_ = TunedDb::open(folder_ / "tuned.db", TunedDb::Mode::read_write);
  SilentObserver observer_;
};

TEST_F(Requalify, UnchangedKernelsStand) {
  evaluator_.info_.language = Language::hip;
  const auto before = tuned(problem_);
  evaluator_.info_.driver = "fake 2.0";
  const auto trials = db_.counts().trials;
  const auto done = run(before);
  EXPECT_TRUE(done.stands);
  EXPECT_GE(done.compiled, 5U);
  EXPECT_EQ(done.unchanged, done.compiled);
  EXPECT_EQ(db_.counts().trials, trials);  // nothing was timed
  const auto now = latest(problem_);
  EXPECT_EQ(now.provenance.driver, "fake 2.0");
  EXPECT_EQ(now.winner.config, before.winner.config);
  EXPECT_EQ(now.winner.measurement.samples_us, before.winner.measurement.samples_us);
  EXPECT_EQ(db_.results().size(), 2U);  // the result for the old driver is kept
}

TEST_F(Requalify, WhereTheDriverCompilesEqualKeysSayNothing) {
  const auto before = tuned(problem_);  // GLSL
  evaluator_.info_.driver = "fake 2.0";
  const auto done = run(before);
  EXPECT_FALSE(done.stands);
  EXPECT_EQ(done.unchanged, done.compiled);
  EXPECT_TRUE(done.winner);
}

TEST_F(Requalify, ChangedKernelsAreTimedAnew) {
  const auto before = tuned(problem_);
  evaluator_.info_.compiler = "another compiler";
  evaluator_.content_keys = [](const Config& config) { return "new " + config.text(); };
  // The old winner becomes slow, and another finalist is now the best.
  const auto factor = evaluator_.factor;
  evaluator_.factor = [=](const Config& config) {
    return config == before.winner.config ? 9.0 : factor(config);
  };
  const auto done = run(before);
  EXPECT_FALSE(done.stands);
  EXPECT_EQ(done.unchanged, 0U);
  ASSERT_TRUE(done.winner);
  EXPECT_NE(done.winner->config, before.winner.config);
  EXPECT_GE(done.winner->rounds, 8);
  EXPECT_EQ(latest(problem_).provenance.compiler, "another compiler");
}

TEST_F(Requalify, AWinnerThatIsWrongNowDoesNotStand) {
  evaluator_.info_.language = Language::hip;
  const auto before = tuned(problem_);
  evaluator_.info_.driver = "fake 2.0";
  evaluator_.fails = [&](const Config& config) -> std::optional<Status> {
    if (config == before.winner.config) return Status::correctness;
    return std::nullopt;
  };
  evaluator_.fails_last_check = evaluator_.fails;
  const auto done = run(before);
  EXPECT_FALSE(done.stands);
  ASSERT_TRUE(done.winner);
  EXPECT_NE(done.winner->config, before.winner.config);
}

TEST_F(Requalify, RegretIsMeasuredInRoundsWithTheWinner) {
  const auto here = tuned(problem_);
  StoredWinner neighbour = here;
  neighbour.problem.dims[0].second = 1024;
  neighbour.winner.config = built_in("gemm").default_config(problem_, evaluator_.device());
  const double expected =
      evaluator_.factor(neighbour.winner.config) / evaluator_.factor(here.winner.config);
  const auto regret = measure_regret(evaluator_, here, neighbour, 5);
  ASSERT_TRUE(regret);
  EXPECT_NEAR(regret->ratio, expected, 0.05 * expected);
  EXPECT_EQ(regret->neighbour, "m=1024 n=512 k=512");
  evaluator_.fails_last_check = [](const Config&) { return std::optional(Status::correctness); };
  EXPECT_FALSE(measure_regret(evaluator_, here, neighbour, 5));
}

}  // namespace
}  // namespace greta::test::requalify_test
