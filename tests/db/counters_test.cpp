// Protects: counters of a configuration come back as they were stored, replace earlier ones, go
// along when histories are merged, and databases of schema 11 get room for them without loss.

#include "db/counters.hpp"

#include <gtest/gtest.h>

#include "db/history.hpp"
#include "db/json.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/unguarded_database.hpp"
#include "tests/layers.hpp"

namespace greta::test::counters_test {
namespace {

using Mode = TunedDb::Mode;

Counters sample_counters() {
  return {.source = "CUPTI 13.0, GH100",
          .passes = 9,
          .cold = true,
          .figures = {{"memory_read_bytes", 33'554'432}, {"occupancy_share", 0.4375}}};
}

TEST(StoredCounters, ComeBackAsTheyWere) {
  const TemporaryFolder folder;
  const std::string problem = sample_problem().key();
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  db.set_counters(sample_device(), problem, sample_trial("1").config, sample_counters(), 12.5);
  const auto all = TunedDb::open(folder / "t.db", Mode::read_only).counters();
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].counters, sample_counters());
  EXPECT_EQ(all[0].device, sample_device().fingerprint());
  EXPECT_EQ(all[0].problem, problem);
  EXPECT_EQ(all[0].config, sample_trial("1").config);
  EXPECT_EQ(all[0].driver, sample_device().driver);
  EXPECT_EQ(all[0].card, sample_device().card.uuid);
  EXPECT_EQ(all[0].us, 12.5);
  EXPECT_FALSE(all[0].counters.figure("l2_bytes"));  // absent, not 0
  EXPECT_TRUE(db.check().empty());
  db.confirm();
}

TEST(StoredCounters, LaterOnesReplaceThoseOfTheSameConfigurationAndCaches) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const std::string problem = sample_problem().key();
  const Config config = sample_trial("1").config;
  Counters warm = sample_counters();
  warm.cold = false;
  db.set_counters(sample_device(), problem, config, sample_counters(), 0);
  db.set_counters(sample_device(), problem, config, warm, 0);
  Counters later = sample_counters();
  later.figures["memory_read_bytes"] = 5;
  db.set_counters(sample_device(), problem, config, later, 0);
  const auto all = db.counters();
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[0].counters, later);
  EXPECT_EQ(all[1].counters, warm);
}

TEST(StoredCounters, GoAlongWithAHistory) {
  const TemporaryFolder folder;
  auto mine = TunedDb::open(folder / "mine.db", Mode::read_write);
  auto theirs = TunedDb::open(folder / "theirs.db", Mode::read_write);
  theirs.set_counters(sample_device(), sample_problem().key(), sample_trial("1").config,
                      sample_counters(), 1);
  EXPECT_EQ(mine.merge_history(theirs, true).counters, 1);
  EXPECT_TRUE(mine.counters().empty());
  EXPECT_EQ(mine.merge_history(theirs).counters, 1);
  EXPECT_EQ(mine.counters().size(), 1U);
  EXPECT_EQ(mine.merge_history(theirs).counters, 0);
}

TEST(StoredCounters, ADatabaseOfSchema11GetsRoomForThem) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  {
    auto db = TunedDb::open(file, Mode::read_write);
    const auto session = db.begin_session(sample_session());
    db.add_trial(session, sample_trial("1"));
    db.set_winner(session, sample_winner());
  }
  {
    SQLite::Database raw(file.string(), SQLite::OPEN_READWRITE);
    raw.exec("DROP TABLE counters; PRAGMA user_version = 11");
  }
  auto db = TunedDb::open(file, Mode::read_write);
  EXPECT_EQ(db.file_schema(), TunedDb::schema_version());
  EXPECT_EQ(db.counts().trials, 1);
  EXPECT_EQ(db.winners().size(), 1U);
  EXPECT_TRUE(db.counters().empty());
  db.set_counters(sample_device(), sample_problem().key(), sample_trial("1").config,
                  sample_counters(), 1);
  EXPECT_EQ(db.counters().size(), 1U);
  EXPECT_TRUE(db.check().empty());
}

TEST(StoredCounters, InJson) {
  const nlohmann::json expected{
      {"source", "CUPTI 13.0, GH100"},
      {"passes", 9},
      {"cold", true},
      {"figures", {{"memory_read_bytes", 33'554'432}, {"occupancy_share", 0.4375}}}};
  EXPECT_EQ(to_json(sample_counters()), expected);
}

}  // namespace
}  // namespace greta::test::counters_test
