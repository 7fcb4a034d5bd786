// Protects: merging keeps the better certified result of equal circumstances, mixes none, and does
// not depend on the order of the databases.
#include "db/merge.hpp"

#include <gtest/gtest.h>

#include <map>

#include "tests/db/fixture.hpp"
#include "tests/db/random_contents.hpp"
#include "tests/layers.hpp"

namespace greta::test::merge_test {
namespace {

using Mode = TunedDb::Mode;

/// Merges databases in files, so that stored data is merged.
class Merging : public ::testing::Test {
 protected:
  TunedDb make(const Contents& contents) {
    auto db = TunedDb::open(folder_ / (std::to_string(++files_) + ".db"), Mode::read_write);
    db.write(contents);
    return db;
  }
  Contents joined(const Contents& a, const Contents& b) {
    auto db = make(a);
    db.merge(b);
    EXPECT_TRUE(db.check().empty());
    return db.contents();
  }

  TemporaryFolder folder_;
  int files_ = 0;
};

StoredWinner result_of(double median_us, const std::string& driver = "example 1.2.3") {
  StoredWinner result;
  result.problem = sample_problem();
  result.device = sample_device();
  result.provenance = sample_session().provenance;
  result.provenance.driver = driver;
  result.winner = sample_winner();
  result.winner.measurement.median_us = median_us;
  return result;
}

Contents holding(std::vector<StoredWinner> results) {
  return {{{sample_device(), "2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z"}},
          std::move(results),
          {},
          {}};
}

TEST_F(Merging, IsIdempotentCommutativeAndAssociative) {
  std::mt19937_64 random(41);
  for (int round = 0; round < 12; ++round) {
    const auto a = random_contents(random), b = random_contents(random),
               c = random_contents(random);
    EXPECT_EQ(canonical(joined(a, a)), canonical(a));
    EXPECT_EQ(canonical(joined(a, {})), canonical(a));
    EXPECT_EQ(canonical(joined({}, a)), canonical(a));
    const auto a_b = joined(a, b);
    EXPECT_EQ(canonical(a_b), canonical(joined(b, a)));
    EXPECT_EQ(canonical(joined(a_b, b)), canonical(a_b));
    EXPECT_EQ(canonical(joined(a_b, c)), canonical(joined(a, joined(b, c))));
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

/// Merges in memory, which is fast enough for many repetitions.
TEST(MergeOrder, IsTotalAndMixesNothing) {
  std::mt19937_64 random(43);
  std::size_t conflicts = 0;
  for (int round = 0; round < 400; ++round) {
    const auto a = random_contents(random), b = random_contents(random);
    const auto forth = merge(a, b).report, back = merge(b, a).report;
    EXPECT_EQ(forth.replaced, back.worse);
    EXPECT_EQ(forth.worse, back.replaced);
    EXPECT_EQ(forth.same, back.same);
    conflicts += forth.conflicts.size();
    for (const auto& [kept, dropped, mine] : forth.conflicts) {
      EXPECT_EQ(kept.provenance.driver, dropped.provenance.driver);
      EXPECT_EQ(kept.provenance.template_key, dropped.provenance.template_key);
      EXPECT_EQ(kept.winner.cold, dropped.winner.cold);
      EXPECT_TRUE(is_certified(kept.winner) || !is_certified(dropped.winner));
    }
    for (const auto& x : a.results) {
      for (const auto& y : b.results) EXPECT_FALSE(is_better(x, y) && is_better(y, x));
    }
  }
  EXPECT_GT(conflicts, 100U);
}

TEST_F(Merging, TheFasterCertifiedOneStays) {
  auto db = make(holding({result_of(10)}));
  EXPECT_EQ(db.merge(holding({result_of(12)})).report.worse, 1U);
  EXPECT_EQ(db.results()[0].winner.measurement.median_us, 10);
  const auto report = db.merge(holding({result_of(9)})).report;
  EXPECT_EQ(report.replaced, 1U);
  ASSERT_EQ(report.conflicts.size(), 1U);
  EXPECT_EQ(report.conflicts[0].dropped.winner.measurement.median_us, 10);
  EXPECT_EQ(db.results()[0].winner.measurement.median_us, 9);

  auto wrong = result_of(1);
  wrong.winner.verdict.passed = false;
  EXPECT_EQ(db.merge(holding({wrong})).report.uncertified, 1U);
  EXPECT_EQ(db.results()[0].winner.measurement.median_us, 9);
}

TEST_F(Merging, OtherCircumstancesStandSideBySide) {
  auto db = make(holding({result_of(10)}));
  const auto report = db.merge(holding({result_of(5, "another driver")})).report;
  EXPECT_EQ(report.added, 1U);
  EXPECT_EQ(report.side_by_side, 1U);
  EXPECT_TRUE(report.conflicts.empty());
  EXPECT_EQ(db.results().size(), 2U);
}

TEST_F(Merging, WhatFailedItsHealthCheckInEitherIsNotUsed) {
  auto db = make(holding({}));
  const DeviceInfo device = sample_device();
  Contents other = holding({});
  other.unsafe.push_back(
      {device.fingerprint(),
       {"matrix", "crash", "killed", device.driver, "2026-11-20T12:00:00Z", device.card.uuid}});
  EXPECT_EQ(db.merge(other).report.unsafe, 1U);
  EXPECT_EQ(db.merge(other).report.unsafe, 0U);
  ASSERT_EQ(db.unsafe(device).size(), 1U);
  EXPECT_EQ(db.unsafe(device)[0].status, "crash");
  EXPECT_TRUE(db.check().empty());
}

TEST_F(Merging, TwoCardsOfAModelHaveOneWinnerAndTheirHistory) {
  auto theirs = result_of(9);
  theirs.device.card = {"ffffffffffffffffffffffffffffffff", "0000:41:00.0"};
  theirs.winner.card = theirs.device.card.uuid;
  Contents other = holding({theirs});
  other.devices = {{theirs.device,
                    "2025-01-01T00:00:00Z",
                    "2025-02-01T00:00:00Z",
                    {{theirs.device.card, "2025-01-01T00:00:00Z", "2025-02-01T00:00:00Z"}}}};
  other.ceilings = {{theirs.device.fingerprint(),
                     {"copy_gbps", 3000, 1, "1", "2025-01-01T00:00:00Z", theirs.winner.card}}};
  auto db = TunedDb::open(folder_ / "mine.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  db.add_trial(session, sample_trial("x"));
  db.set_winner(session, sample_winner());
  db.set_ceilings(sample_device(), {{"copy_gbps", 4000, 1, "1", "2026-01-01T00:00:00Z"}});
  EXPECT_EQ(db.merge(other).report.replaced, 1U);
  ASSERT_EQ(db.results().size(), 1U);
  EXPECT_EQ(db.results()[0].winner.card, theirs.winner.card);
  EXPECT_EQ(db.results()[0].device.card, sample_device().card) << "seen last";
  EXPECT_EQ(db.trials(session)[0].card, sample_device().card.uuid);
  const auto devices = db.devices();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].first_seen_utc, "2025-01-01T00:00:00Z");
  EXPECT_EQ(devices[0].cards.size(), 2U);
  EXPECT_EQ(db.contents().ceilings.size(), 2U);
  EXPECT_EQ(db.ceilings(sample_device().fingerprint())[0].value, 4000);
  EXPECT_TRUE(db.check().empty());
}

TEST_F(Merging, KeepsTheSessionsAndTrialsThatAreHere) {
  auto db = TunedDb::open(folder_ / "mine.db", Mode::read_write);
  const auto session = db.begin_session(sample_session());
  db.add_trial(session, sample_trial("x"));
  db.set_winner(session, sample_winner());
  db.merge(holding({result_of(1)}));
  ASSERT_EQ(db.results().size(), 1U);
  EXPECT_EQ(db.results()[0].session, 0);
  EXPECT_EQ(db.trials(session).size(), 1U);
  EXPECT_TRUE(db.check().empty());
}

}  // namespace
}  // namespace greta::test::merge_test
