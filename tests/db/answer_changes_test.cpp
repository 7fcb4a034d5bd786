// Protects: a database that ships less than an earlier one is noticed, and the differences between
// two cards are not mistaken for it.
#include "db/answer_changes.hpp"

#include <gtest/gtest.h>

#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::answer_changes_test {
namespace {

/// A winner with BM = `id` that is `speedup` times as fast as the default, within 1 %.
StoredWinner answer(int id, double speedup, double median_us = 100) {
  StoredWinner stored;
  stored.problem = sample_problem();
  stored.device = sample_device();
  stored.provenance = sample_session().provenance;
  stored.winner = sample_winner();
  stored.winner.config = {"tiled", {{"BM", id}}};
  stored.winner.is_default = false;
  stored.winner.speedup = speedup;
  stored.winner.speedup_low = 0.99 * speedup;
  stored.winner.speedup_high = 1.01 * speedup;
  stored.winner.measurement.median_us = median_us;
  stored.winner.measurement.low_us = 0.99 * median_us;
  stored.winner.measurement.high_us = 1.01 * median_us;
  return stored;
}

StoredWinner the_default(double median_us = 100) {
  StoredWinner stored = answer(0, 1, median_us);
  stored.winner.is_default = true;
  stored.winner.speedup_low = stored.winner.speedup_high = 1;
  return stored;
}

StoredWinner with_other_templates(StoredWinner stored) {
  stored.provenance.template_key = "other";
  return stored;
}

Change change(const StoredWinner& before, const StoredWinner& after) {
  const auto changes = answer_changes({before}, {after});
  EXPECT_EQ(changes.size(), 1U);
  return changes.front().change;
}

TEST(AnswerChanges, CompareSpeedUpsOverTheDefault) {
  EXPECT_EQ(change(answer(1, 1.10), answer(2, 1.20)), Change::better);
  EXPECT_EQ(change(answer(1, 1.20), answer(2, 1.10)), Change::worse);
  EXPECT_EQ(change(answer(1, 1.10), answer(2, 1.11)), Change::same);
  EXPECT_EQ(change(answer(1, 1.10), the_default()), Change::worse);
  EXPECT_EQ(change(the_default(), answer(1, 1.10)), Change::better);
  EXPECT_NEAR(answer_changes({answer(1, 1.1)}, {answer(2, 1.21)}).front().ratio, 1.1, 1e-9);
}

// The times of two defaults that were never taken agree, which says nothing.
TEST(AnswerChanges, AWinnerWithoutARatioIsComparedByItsTime) {
  auto slow = answer(1, 1, 200), fast = answer(2, 1.5, 100);
  slow.winner.default_us = 0;
  EXPECT_FALSE(has_ratio(slow.winner));
  EXPECT_EQ(change(fast, slow), Change::worse);
  fast.winner.default_us = 0;
  EXPECT_EQ(change(slow, fast), Change::better);
}

TEST(AnswerChanges, SayWhereTheCircumstancesDiffer) {
  const auto before = answer(1, 1.10);
  auto after = before;
  EXPECT_EQ(answer_changes({before}, {after}).front().circumstances, "");
  after.provenance.compiler = "another compiler";
  EXPECT_EQ(answer_changes({before}, {after}).front().circumstances,
            "compiler: another compiler instead of " + before.provenance.compiler);
  after.provenance.driver = "another driver";
  EXPECT_NE(answer_changes({before}, {after}).front().circumstances.find("driver: another driver"),
            std::string::npos);
}

TEST(AnswerChanges, AnotherCardMakesNoDifference) {
  EXPECT_EQ(change(answer(1, 1.10, 100), answer(2, 1.10, 130)), Change::same);
  EXPECT_EQ(change(answer(1, 1.10, 100), answer(1, 1.05, 130)), Change::same);
  EXPECT_EQ(change(the_default(3.4), the_default(4.3)), Change::same);
}

TEST(AnswerChanges, CompareTimesWhereTemplatesDiffer) {
  EXPECT_EQ(change(answer(1, 1.1, 100), with_other_templates(answer(2, 1.1, 105))), Change::same);
  EXPECT_EQ(change(answer(1, 1.1, 100), with_other_templates(answer(2, 1.5, 130))), Change::worse);
  EXPECT_EQ(change(answer(1, 1.1, 130), with_other_templates(answer(2, 1.0, 100))), Change::better);
  EXPECT_EQ(change(answer(1, 1.1, 3.4), with_other_templates(answer(2, 1.1, 4.3))), Change::same);
}

TEST(AnswerChanges, AConfigurationThatBecameSlowerUnderOtherTemplatesIsWorse) {
  EXPECT_EQ(change(answer(1, 1.1, 100), with_other_templates(answer(1, 1.1, 200))), Change::worse);
}

// A better default makes all speed-ups smaller.
TEST(AnswerChanges, CompareTimesWhereDefaultsDiffer) {
  StoredWinner before = answer(1, 1.5, 100), after = answer(2, 1.0, 99);
  before.winner.default_us = 150;
  after.winner.default_us = 99;
  EXPECT_EQ(change(before, after), Change::same);
  StoredWinner other_default = the_default(50);
  other_default.winner.config = {"tiled", {{"BM", 7}}};
  EXPECT_EQ(change(the_default(100), other_default), Change::better);
}

// A card in another state measures everything slower, and with wide intervals.
TEST(AnswerChanges, RatiosDecideWhereTimesThatDifferHaveWideIntervals) {
  StoredWinner before = answer(1, 1.258, 478), after = the_default(898);
  before.winner.default_us = 601;
  after.winner.default_us = 898;
  before.winner.measurement.high_us = 900;
  EXPECT_EQ(change(before, after), Change::worse);
  EXPECT_EQ(change(after, before), Change::better);
  after.winner.measurement.median_us = 480;
  EXPECT_EQ(change(before, after), Change::same);
}

TEST(AnswerChanges, LostAndNewProblems) {
  StoredWinner other = answer(1, 1.1);
  other.winner.cold = !other.winner.cold;
  const auto changes = answer_changes({answer(1, 1.1)}, {other});
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].change, Change::lost);
  EXPECT_FALSE(changes[0].after);
  EXPECT_EQ(changes[1].change, Change::added);
  EXPECT_FALSE(changes[1].before);
}

TEST(AnswerChanges, TheFirstResultOfAProblemCounts) {
  const auto changes =
      answer_changes({answer(1, 1.2), answer(2, 1.0)}, {answer(3, 1.2), answer(4, 1.0)});
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].change, Change::same);
  EXPECT_EQ(changes[0].after->winner.config, answer(3, 1.2).winner.config);
}

}  // namespace
}  // namespace greta::test::answer_changes_test
