// Protects: the migration of databases of schema 5, in which each card was a separate device. All
// contents are kept when the cards become cards of a device model, also if rows are damaged or the
// process is killed. A shipped database serves every card of the model.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <functional>
#include <random>
#include <thread>

#include "db/merge.hpp"
#include "db/winner_source.hpp"
#include "tests/db/schema5.hpp"
#include "tests/layers.hpp"

namespace greta::test::card_migration_test {
namespace {

using Mode = TunedDb::Mode;

class CardMigration : public ::testing::Test {
 protected:
  TunedDb migrate() {
    old_.close();
    return TunedDb::open(file_, Mode::read_write);
  }
  int get_int(const std::string& query) {
    SQLite::Database database(file_, SQLite::OPEN_READWRITE);
    return database.execAndGet(query).getInt();
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "t.db";
  Schema5 old_{file_};
};

TEST_F(CardMigration, TwoCardsOfAModelBecomeOneDevice) {
  old_.add(card('a'), "2026-11-01T00:00:00Z");
  old_.add(card('b'), "2026-11-02T00:00:00Z");
  const auto later = old_.add(Known{.device = card('a'), .started = "2026-11-21T00:00:00Z"});
  const auto earlier = old_.add(Known{.device = card('b'), .us = 5});
  const auto other = old_.add(Known{.device = card('b'), .m = 2});
  for (const char* id : {"1", "2"}) {
    old_.insert("ceilings", {{"device", id},
                             {"kind", "'copy_gbps'"},
                             {"value", std::string(id) + "000.0"},
                             {"driver", "'d'"},
                             {"measured_utc", std::string("'2026-11-0") + id + "T00:00:00Z'"}});
  }
  old_.insert("unsafe", {{"device", "2"},
                         {"driver", text_literal(sample_device().driver)},
                         {"health_check", "'matrix'"},
                         {"status", "'timeout'"},
                         {"message", "''"},
                         {"recorded_utc", "'then'"}});
  const auto db = migrate();
  EXPECT_TRUE(db.check().empty()) << db.check().front();
  const auto devices = db.devices();
  ASSERT_EQ(devices.size(), 1U);
  EXPECT_EQ(devices[0].info.card, card('b').card) << "seen last";
  EXPECT_EQ(devices[0].first_seen_utc, "2026-11-01T00:00:00Z");
  ASSERT_EQ(devices[0].cards.size(), 2U);
  EXPECT_EQ(devices[0].cards[0].card, card('a').card);
  EXPECT_EQ(devices[0].cards[1].last_seen_utc, "2026-11-02T00:00:00Z");

  const auto key = devices[0].info.fingerprint();
  EXPECT_EQ(db.results().size(), 2U);
  const auto found = db.find_winner(key, problem_of(1).key(), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->session, later);
  EXPECT_EQ(found->winner.card, card('a').card.uuid);
  EXPECT_EQ(db.find_winner(key, problem_of(2).key(), true)->session, other);

  EXPECT_EQ(db.sessions().size(), 3U) << "the other card's session is history";
  EXPECT_EQ(db.trials(earlier).at(0).card, card('b').card.uuid);
  EXPECT_EQ(db.trials(later).at(0).card, card('a').card.uuid);
  EXPECT_EQ(db.fastest_configs(key, problem_of(1).key(), true, 9).size(), 2U);
  EXPECT_EQ(db.contents().ceilings.size(), 2U);
  EXPECT_EQ(db.ceilings(key).at(0).value, 2000);
  EXPECT_TRUE(db.unsafe(card('a')).empty());
  EXPECT_EQ(db.unsafe(card('b')).size(), 1U);
}

TEST_F(CardMigration, DamagedRowsStayAsTheyAre) {
  old_.add(Known{.device = card('a'), .us = 7});
  old_.add(Known{.device = card('b'), .started = "2026-11-21T00:00:00Z", .us = 8});
  old_.add(Known{.device = card('b'), .m = 2});
  old_.exec("UPDATE winners SET median_us = 1 WHERE circumstances = 2");
  old_.exec("UPDATE trials SET median_us = 1 WHERE id = 3");
  old_.insert("ceilings", {{"device", "2"},
                           {"kind", "'copy_gbps'"},
                           {"value", "5.0"},
                           {"driver", "'d'"},
                           {"measured_utc", "'then'"}});
  old_.exec("UPDATE ceilings SET value = 6");
  const auto db = migrate();
  const auto results = db.results();
  ASSERT_EQ(results.size(), 1U);
  EXPECT_EQ(results[0].winner.measurement.median_us, 7);
  EXPECT_TRUE(db.contents().ceilings.empty());
  // Two winners with their circumstances and device, a trial, and a ceiling.
  EXPECT_EQ(Plain(file_).damaged(), 6);
  EXPECT_EQ(get_int("SELECT count(*) FROM winners WHERE median_us = 1 AND card IS NULL"), 2);
  EXPECT_EQ(get_int("SELECT value FROM ceilings"), 6);
  auto pruned = TunedDb::open(file_, Mode::read_write);
  PruneRequest request;
  request.damaged = true;
  pruned.prune(request, false);
  EXPECT_TRUE(pruned.check().empty());
  EXPECT_EQ(pruned.results().size(), 1U);
}

/// The key that selects a winner.
using Question = std::tuple<std::string, std::string, std::int64_t, bool>;

/// Returns the answer for every intact winner with intact circumstances and device: the one
/// certified last. Called before the migration.
std::map<Question, double> answers(const std::filesystem::path& file) {
  Plain plain(file);
  const auto sound = [&](const std::string& table, const std::string& row) {
    return is_sound(*plain, table, row);
  };
  SQLite::Statement select(*plain, fmt::format(R"(
    SELECT d.info, c.driver, w.problem, w.cold, w.median_us FROM winners w
      JOIN circumstances c ON c.id = w.circumstances JOIN devices d ON d.id = c.device
    WHERE {} AND {} AND {} ORDER BY w.started_utc, w.session)",
                                               sound("winners", "w."), sound("circumstances", "c."),
                                               sound("devices", "d.")));
  std::map<Question, double> found;
  while (select.executeStep()) {
    const auto device = device_from_json(nlohmann::json::parse(select.getColumn(0).getString()));
    found[{device.fingerprint(), select.getColumn(1).getString(),
           Problem::parse(select.getColumn(2).getString()).value().dims[0].second,
           select.getColumn(3).getInt() != 0}] = select.getColumn(4).getDouble();
  }
  return found;
}

std::map<Question, double> answers(const TunedDb& db) {
  std::map<Question, double> found;
  for (const auto& result : db.results()) {
    const Question question{result.device.fingerprint(), result.provenance.driver,
                            result.problem.dims[0].second, result.winner.cold};
    EXPECT_TRUE(found.emplace(question, result.winner.measurement.median_us).second);
  }
  return found;
}

void fill_at_random(Schema5& old, std::mt19937_64& random) {
  for (auto left = 1 + random() % 30; left > 0; --left) {
    old.add(Known{.device = card("abc"[random() % 3], random() % 2 ? "one" : "another"),
                  .driver = random() % 2 ? "driver 1" : "driver 2",
                  .m = static_cast<std::int64_t>(1 + random() % 3),
                  .cold = random() % 2 == 0,
                  .started = "2026-11-0" + std::to_string(1 + random() % 9) + "T00:00:00Z",
                  .us = 1 + static_cast<double>(random() % 1000)});
  }
}

/// Damages rows of random tables from outside GRETA.
void damage_at_random(Schema5& old, std::mt19937_64& random) {
  static const std::vector<std::string> changes{"UPDATE winners SET median_us = 0.5 WHERE rowid_of",
                                                "UPDATE winners SET checksum = 5 WHERE",
                                                "UPDATE circumstances SET compiler = 'x' WHERE",
                                                "UPDATE circumstances SET checksum = 5 WHERE",
                                                "UPDATE devices SET name = 'x' WHERE",
                                                "UPDATE sessions SET budget = 'x' WHERE",
                                                "UPDATE trials SET median_us = 0.5 WHERE"};
  for (auto left = 1 + random() % 4; left > 0; --left) {
    auto sql = changes[random() % changes.size()];
    const bool winners = sql.starts_with("UPDATE winners");
    if (const auto at = sql.find(" rowid_of"); at != std::string::npos) sql.resize(at);
    old.exec(sql + fmt::format(" {} % 5 = {}", winners ? "session" : "id", random() % 5));
  }
}

TEST(CardMigrationAtRandom, AnswersAreThoseCertifiedLast) {
  std::mt19937_64 random(61);
  int merged = 0;
  for (int round = 0; round < 60; ++round) {
    const TemporaryFolder folder;
    Schema5 old(folder / "t.db");
    fill_at_random(old, random);
    const bool damage = round % 2 == 1;
    if (damage) damage_at_random(old, random);
    old.close();
    const auto expected = answers(folder / "t.db");
    std::int64_t winners = 0, trials = 0, sessions = 0;
    {
      Plain plain(folder / "t.db");
      winners = plain->execAndGet("SELECT count(*) FROM winners").getInt64();
      trials = plain->execAndGet("SELECT count(*) FROM trials").getInt64();
      sessions = plain->execAndGet("SELECT count(*) FROM sessions").getInt64();
    }
    auto db = TunedDb::open(folder / "t.db", Mode::read_write);
    EXPECT_EQ(answers(db), expected);
    Plain plain(folder / "t.db");
    EXPECT_EQ(plain->execAndGet("SELECT count(*) FROM trials").getInt64(), trials);
    EXPECT_EQ(plain->execAndGet("SELECT count(*) FROM sessions").getInt64(), sessions);
    EXPECT_EQ(plain
                  ->execAndGet("SELECT count(*) FROM trials t JOIN sessions s ON s.id = t.session "
                               "WHERE t.card IS NULL AND " +
                               is_sound(*plain, "trials", "t.") + " AND " +
                               is_sound(*plain, "sessions", "s.") +
                               " AND s.device IN (SELECT device FROM cards)")
                  .getInt64(),
              0);
    merged += static_cast<std::int64_t>(expected.size()) < winners ? 1 : 0;
    if (!damage) {
      EXPECT_TRUE(db.check().empty()) << db.check().front();
      std::map<std::string, std::size_t> cards;
      for (const auto& device : db.devices()) {
        EXPECT_TRUE(cards.emplace(device.info.fingerprint(), device.cards.size()).second);
      }
      EXPECT_LE(cards.size(), 2U);
    }
    PruneRequest request;
    request.damaged = true;
    db.prune(request, false);
    EXPECT_TRUE(db.check().empty()) << db.check().front();
    EXPECT_EQ(answers(db), expected);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GT(merged, 20) << "the cards had winners in common";
}

TEST_F(CardMigration, WhenKilledItLeavesTheOldFile) {
  for (int i = 0; i < 300; ++i) {
    old_.add(Known{.device = card("abc"[i % 3]), .m = 1 + i % 100}, std::string(20'000, 'x'));
  }
  old_.close();
  const auto before = read_file(file_);
  const auto expected = answers(file_);
  std::mt19937_64 random(67);
  int unfinished = 0;
  for (int round = 0; round < 12; ++round) {
    const pid_t child = start_child([&] { TunedDb::open(file_, Mode::read_write); });
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 60'000));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    if (get_int("PRAGMA user_version") == 5) {
      ++unfinished;
      EXPECT_EQ(answers(file_), expected);
      EXPECT_EQ(get_int("SELECT count(*) FROM trials"), 300);
    }
    {
      const auto db = TunedDb::open(file_, Mode::read_write);
      EXPECT_EQ(answers(db), expected);
      EXPECT_TRUE(db.check().empty());
      EXPECT_EQ(db.counts().trials, 300);
      EXPECT_EQ(db.counts().cards, 3);
    }
    for (const char* suffix : {"-wal", "-shm", "-journal"}) {
      std::filesystem::remove(file_.string() + suffix);
    }
    write_file(file_, before);
  }
  EXPECT_GT(unfinished, 0) << "none was killed before its end";
}

TEST_F(CardMigration, AShippedDatabaseAnswersForEveryCard) {
  old_.add(Known{.device = card('a'), .us = 7});
  old_.add(Known{.device = card('b'), .started = "2026-11-21T00:00:00Z", .us = 8});
  old_.add(Known{.device = card('b'), .m = 2});
  old_.mark_as_shipped();
  old_.close();
  const auto before = read_file(file_);
  const auto here = card('9');
  const TunedDb db = TunedDb::open(file_, Mode::read_only);
  EXPECT_TRUE(db.check().empty()) << db.check().front();
  EXPECT_TRUE(db.shipped());
  EXPECT_EQ(db.file_schema(), 5);
  EXPECT_EQ(db.results().size(), 2U);
  const auto found = db.find_winner(here.fingerprint(), problem_of(1).key(), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->winner.measurement.median_us, 8);
  EXPECT_EQ(found->winner.card, card('b').card.uuid);
  const WinnerSource source(file_);
  EXPECT_TRUE(source.find(here.fingerprint(), problem_of(2).key(), true, here));
  int visited = 0;
  source.for_each(
      true, [](const DeviceInfo&) { return true; },
      [&](const WinnerPlace& place) {
        ++visited;
        ASSERT_NE(place.device, nullptr);
        EXPECT_EQ(place.device->fingerprint(), here.fingerprint());
      });
  EXPECT_EQ(visited, 2);
  TunedDb own = TunedDb::open(folder_ / "own.db", Mode::read_write);
  own.merge(db.contents());
  EXPECT_EQ(own.devices().at(0).cards.size(), 2U);
  EXPECT_TRUE(own.check().empty());
  EXPECT_EQ(read_file(file_), before);
}

TEST_F(CardMigration, AMissingLineOfTheManifestIsNotWrittenAnew) {
  old_.add(Known{.device = card('a')});
  old_.mark_as_shipped();
  old_.exec("DELETE FROM winners; DELETE FROM manifest WHERE name = 'winners'");
  old_.close();
  const auto findings = TunedDb::open(file_, Mode::read_only).check();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_TRUE(findings[0].starts_with("manifest: ")) << findings[0];
}

TEST_F(CardMigration, WhatAShippedDatabaseLacksIsStillFound) {
  old_.add(Known{.device = card('a')});
  old_.add(Known{.device = card('a'), .m = 2});
  old_.mark_as_shipped();
  old_.exec("DELETE FROM winners WHERE problem LIKE '% m=2 %'");
  old_.close();
  const auto findings = TunedDb::open(file_, Mode::read_only).check();
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0], "winners: 1 rows, 2 were shipped");
}

}  // namespace
}  // namespace greta::test::card_migration_test
