// Protects: budgets of time, trials and percentages are parsed exactly, and end when they are used
// up.

#include "tuner/search/budget.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers.hpp"

namespace greta::test::budget_test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

Budget budget(std::string_view text) {
  return Budget::parse(text).value();
}

TEST(Budget, ReadsTimesTrialsAndShares) {
  const struct {
    std::string_view text;
    Budget::Kind kind;
    double amount;
  } cases[] = {
      {"60s", Budget::Kind::seconds, 60},  {"0.5s", Budget::Kind::seconds, 0.5},
      {"1.5m", Budget::Kind::seconds, 90}, {"2h", Budget::Kind::seconds, 7200},
      {"500", Budget::Kind::trials, 500},  {"1", Budget::Kind::trials, 1},
      {"5%", Budget::Kind::percent, 5},    {"100%", Budget::Kind::percent, 100},
  };
  for (const auto& expected : cases) {
    const auto parsed = Budget::parse(expected.text);
    ASSERT_TRUE(parsed) << expected.text;
    EXPECT_EQ(parsed->kind(), expected.kind) << expected.text;
    EXPECT_DOUBLE_EQ(parsed->amount(), expected.amount) << expected.text;
    EXPECT_EQ(parsed->text(), expected.text);
  }
}

TEST(Budget, HasParts) {
  EXPECT_DOUBLE_EQ(budget("60s").part(0.25).amount(), 15);
  EXPECT_EQ(budget("60s").part(0.25).text(), "15s");
  EXPECT_DOUBLE_EQ(budget("300").part(0.5).amount(), 150);
  EXPECT_DOUBLE_EQ(budget("1").part(0.5).amount(), 1);
  EXPECT_EQ(budget("5%").part(0.5).text(), "5%");
}

TEST(Budget, RejectsWhatMakesNoSense) {
  for (const std::string text :
       {"",   "0",    "0s", "0%",   "-1",  "-5s",    "101%", "1.5",  "s",    "%",    "5 s",
        "5S", "5min", "1d", "infs", "nan", "1e400s", "1e20", "five", "60s ", " 60s", "60ss"}) {
    const auto parsed = Budget::parse(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.failure().status, Status::invalid_argument);
    EXPECT_EQ(parsed.failure().message,
              "budget " + (text.empty() ? std::string("\"\"") : text) +
                  ": must be a time like 60s, 10m or 1h, a number of trials like 500, or a share "
                  "of the space like 5%; more than 0, at most 100%");
  }
}

TEST(Budget, OfTimeIsSpentByTheClock) {
  Budget time = budget("10s");
  const Budget::Clock::time_point start{seconds(1000)};
  time.start(1, start);
  time.count_trial();
  EXPECT_FALSE(time.spent(start + milliseconds(9999)));
  EXPECT_TRUE(time.spent(start + seconds(10)));
  EXPECT_DOUBLE_EQ(time.used(start + seconds(4)), 0.4);
  EXPECT_DOUBLE_EQ(time.used(start + seconds(40)), 1);
  EXPECT_DOUBLE_EQ(time.elapsed_s(start + seconds(4)), 4);
  EXPECT_DOUBLE_EQ(time.remaining_s(start + seconds(4)), 6);
  EXPECT_DOUBLE_EQ(time.remaining_s(start + seconds(40)), 0);
}

int trials_of(Budget budget, std::uint64_t space_count) {
  budget.start(space_count);
  int trials = 0;
  while (!budget.spent()) {
    budget.count_trial();
    ++trials;
  }
  EXPECT_DOUBLE_EQ(budget.used(), 1);
  EXPECT_TRUE(std::isinf(budget.remaining_s()));
  return trials;
}

TEST(Budget, OfTrialsAndSharesIsSpentByTrials) {
  EXPECT_EQ(trials_of(budget("7"), 1000), 7);
  EXPECT_EQ(trials_of(budget("5%"), 1000), 50);
  EXPECT_EQ(trials_of(budget("5%"), 1001), 51);
  EXPECT_EQ(trials_of(budget("0.01%"), 10), 1);
}

}  // namespace
}  // namespace greta::test::budget_test
