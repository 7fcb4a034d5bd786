// Protects: an API is only reported as faster on a card if alternating turns (or else the certified
// intervals) show it, and the database gives the same answer afterwards.

#include "tuner/session/contest.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tuner/fake_evaluator.hpp"
#include "tests/tuner/silent_observer.hpp"

namespace greta::test::contest_test {
namespace {

class ContestTest : public ::testing::Test {
 protected:
  ContestTest() {
    hip_.info_.backend = Api::hip;
    for (auto* evaluator : {&vulkan_, &hip_}) evaluator->info_.card = {"3031", "0000:01:00.0"};
    options_.budget = Budget::parse("20").value();
    options_.seed = 3;
    options_.started_utc = "2026-01-01T00:00:00Z";
  }

  SessionResult tune_on(FakeEvaluator& evaluator) {
    return tune(evaluator, db_, problem_, options_, observer_, observer_.stop_);
  }

  /// Tunes on both, compares, and stores the result of the turns.
  ContestResult hold() {
    sessions_ = {tune_on(vulkan_), tune_on(hip_)};
    auto result = hold_contest({{vulkan_, sessions_[0]}, {hip_, sessions_[1]}}, options_, 60,
                               observer_.stop_);
    for (const auto& other : result.others) {
      if (other.comparison.measured()) db_.set_comparison(other.comparison);
    }
    return result;
  }
  HardwareWinners known() {
    return db_.find_winners_of_hardware(vulkan_.info_, problem_.key(), true);
  }

  test::TemporaryFolder folder_;
  Problem problem_ = Problem::parse("gemm dtype=f32 out=f32 m=512 n=512 k=512").value();
  FakeEvaluator vulkan_, hip_;
  TunedDb db_ = TunedDb::open(folder_ / "tuned.db", TunedDb::Mode::read_write);
  SilentObserver observer_;
  SessionOptions options_;
  std::vector<SessionResult> sessions_;
};

TEST_F(ContestTest, TheFasterApiIsFoundAndRemembered) {
  hip_.speed = 1.3;
  const auto result = hold();
  EXPECT_EQ(result.fastest, 1U);
  EXPECT_TRUE(result.sure());
  ASSERT_EQ(result.others.size(), 1U);
  const Comparison& comparison = result.others[0].comparison;
  EXPECT_TRUE(comparison.measured());
  EXPECT_GE(comparison.faster_us.size(), 8U);
  EXPECT_EQ(comparison.faster, sessions_[1].id);
  EXPECT_EQ(comparison.slower, sessions_[0].id);
  EXPECT_TRUE(result.notes.empty());

  const auto stored = known();
  ASSERT_EQ(stored.winners.size(), 2U);
  EXPECT_EQ(stored.winners[0].device.backend, Api::hip);
  EXPECT_TRUE(stored.sure());
  EXPECT_EQ(stored.comparisons[0].faster_us, comparison.faster_us);
}

TEST_F(ContestTest, EqualApisAreNotToldApart) {
  vulkan_.noise = hip_.noise = 0.02;
  EXPECT_FALSE(hold().sure());
  EXPECT_FALSE(known().sure());
}

// The sessions ran at different clocks. Turns alternate, so clock changes affect both devices.
TEST_F(ContestTest, TurnsAreBelievedMoreThanSessions) {
  hip_.speed = 1.1;
  sessions_ = {tune_on(vulkan_), tune_on(hip_)};
  vulkan_.speed = 1.2;
  const auto result =
      hold_contest({{vulkan_, sessions_[0]}, {hip_, sessions_[1]}}, options_, 60, observer_.stop_);
  EXPECT_EQ(result.fastest, 0U);
  EXPECT_EQ(known().winners[0].device.backend, Api::hip);
  db_.set_comparison(result.others[0].comparison);
  EXPECT_EQ(known().winners[0].device.backend, Api::vulkan);
}

TEST_F(ContestTest, WithoutTurnsTheCertifiedIntervalsDecideAndTheReasonIsTold) {
  hip_.speed = 1.3;
  sessions_ = {tune_on(vulkan_), tune_on(hip_)};
  vulkan_.fails_in_rounds = [](const Config&) { return true; };
  const auto result =
      hold_contest({{vulkan_, sessions_[0]}, {hip_, sessions_[1]}}, options_, 60, observer_.stop_);
  EXPECT_EQ(result.fastest, 1U);
  EXPECT_FALSE(result.others[0].comparison.measured());
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_NE(result.notes[0].find("planted"), std::string::npos);
  EXPECT_TRUE(known().sure());
}

TEST_F(ContestTest, AStopEndsTheTurns) {
  sessions_ = {tune_on(vulkan_), tune_on(hip_)};
  const std::atomic<bool> stop{true};
  const auto result =
      hold_contest({{vulkan_, sessions_[0]}, {hip_, sessions_[1]}}, options_, 60, stop);
  EXPECT_FALSE(result.others[0].comparison.measured());
}

TEST_F(ContestTest, TheFastestOfThreeIsComparedWithBothOthers) {
  FakeEvaluator third;
  third.info_.backend = Api::hip_host;
  third.speed = 0.2;
  hip_.speed = 1.5;
  sessions_ = {tune_on(vulkan_), tune_on(hip_), tune_on(third)};
  const auto result =
      hold_contest({{vulkan_, sessions_[0]}, {hip_, sessions_[1]}, {third, sessions_[2]}}, options_,
                   60, observer_.stop_);
  EXPECT_EQ(result.fastest, 1U);
  ASSERT_EQ(result.others.size(), 2U);
  EXPECT_EQ(result.others[0].entrant, 0U);
  EXPECT_EQ(result.others[1].entrant, 2U);
  EXPECT_TRUE(result.sure());
}

}  // namespace
}  // namespace greta::test::contest_test
