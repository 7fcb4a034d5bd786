// Protects: a damaged row is never read as a result, never gets a valid checksum, never disappears
// without a report, and never blocks a new row. Stored data is read back.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "db/sqlite/checksums.hpp"
#include "db/sqlite/connection.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/random_contents.hpp"
#include "tests/db/unguarded_database.hpp"
#include "tests/layers.hpp"

namespace greta::test::quarantine_test {
namespace {

using Mode = TunedDb::Mode;
namespace fs = std::filesystem;

template <typename T>
const T& any_of(const std::vector<T>& all, std::mt19937_64& random) {
  return all[random() % all.size()];
}

/// Applies a random kind of damage to a random table. The schema rejects some.
void damage(Plain& plain, std::mt19937_64& random) {
  const auto table = any_of(sealed_tables(*plain), random);
  const auto columns = content_columns(*plain, table), keys = key_columns(*plain, table);
  const auto column = any_of(columns, random), key = keys.front();
  const std::string row = fmt::format("{0} = (SELECT {0} FROM {1} ORDER BY {0} LIMIT 1 OFFSET {2})",
                                      key, table, random() % 3);
  const auto set = [&](const std::string& what, const std::string& value) {
    return fmt::format("UPDATE {} SET {} = {} WHERE {}", table, what, value, row);
  };
  const std::vector<std::string> values{
      "NULL",
      "1",
      "-1e300",
      "9e999",
      "char(27) || '[31m' || char(10)",
      "'x'",
      "hex(zeroblob(40000))",
      "zeroblob(100)",
      "9223372036854775807",
      fmt::format("(SELECT {} FROM {} ORDER BY random() LIMIT 1)", column, table)};
  std::string others;
  for (const auto& name : columns) {
    if (name != key) others += ", " + name;
  }
  const std::vector<std::string> changes{
      set(column, any_of(values, random)),
      set(column, any_of(values, random)),
      set("checksum", "NULL"),
      set("checksum", fmt::format("(SELECT max(checksum) FROM {})", table)),
      set("checksum", "0"),
      fmt::format("DELETE FROM {} WHERE {}", table, row),
      fmt::format("INSERT INTO {1} ({0}{2}, checksum) SELECT {0} || '7'{2}, checksum FROM {1} "
                  "WHERE {3}",
                  key, table, others, row)};
  try {
    plain->exec(any_of(changes, random));
  } catch (const SQLite::Exception&) {
  }
}

/// Executes a random command of the tools. `number` makes the written data unique.
void command(TunedDb& db, const fs::path& folder, std::mt19937_64& random, int number) {
  switch (random() % 9) {
    case 0:
      return tune(db, 1 + static_cast<int>(random() % 4), 100 + number);
    case 1: {
      auto results = db.results();
      for (auto& result : results) result.regret = Regret{"m=9", 1.0 + number, {}};
      return db.set_regrets(results);
    }
    case 2: {
      auto contents = random_contents(random);
      for (auto& result : contents.results) result.winner.measurement.median_us = 0.001 * number;
      static_cast<void>(db.merge(contents));
      return;
    }
    case 3:
      return db.set_ceilings(sample_device(), {{"fma", 1.0 * number, 1, "d", "now"}});
    case 4:
      db.clear_unsafe(sample_device(), "f16");
      return db.set_unsafe(sample_device(), {"f16", "crash", std::to_string(number), "", "now"});
    case 5: {
      PruneRequest request;
      request.winners = db.results();
      request.winners.resize(request.winners.size() / 2);
      for (const auto& session : db.sessions()) request.trials_of.push_back(session.id);
      db.prune(request, random() % 2 == 0);
      return;
    }
    case 6: {
      TunedDb::ship(db.contents(), folder / "shipped.db");
      const auto shipped = TunedDb::open(folder / "shipped.db", Mode::read_only);
      EXPECT_EQ(shipped.results().size(), db.results().size());
      return;
    }
    case 7:
      db.set_comparison({2, 1, 1.0 + number, 1, 2, 0.95, {1}, {2}});
      return;
    default:
      db.winners_by_hardware();
      return db.compact();
  }
}

/// Executes a random sequence of commands on a database with damaged rows. None of these rows may
/// get a valid checksum, and none may disappear unless it was reported.
void run_sequence(std::uint64_t seed, int& damaged, int& discarded) {
  std::mt19937_64 random(seed);
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  fill(file);
  // A row that lost its checksum alone may be written again as it was; the numbers of damaged rows
  // tell whether it was sealed.
  const auto good = Plain(file).contents(true);
  {
    Plain plain(file);
    for (auto left = 4 + random() % 4; left > 0; --left) damage(plain, random);
  }
  std::int64_t before = Plain(file).damaged();
  auto bad = Plain(file).contents(false);
  for (const auto sum : good) bad.erase(sum);
  damaged += static_cast<int>(before);
  for (int number = 1; number <= 5; ++number) {
    auto db = TunedDb::open(file, Mode::read_write);
    EXPECT_GE(db.damaged().size(), static_cast<std::size_t>(before));
    try {
      command(db, folder / "", random, number);
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    }
    const auto gone = static_cast<int>(db.discarded().size());
    const auto now = Plain(file).damaged();
    EXPECT_EQ(now, before - gone) << "seed " << seed << ", command " << number;
    for (const auto sum : Plain(file).contents(true)) EXPECT_EQ(bad.count(sum), 0U) << seed;
    EXPECT_NO_THROW(db.confirm()) << seed;
    discarded += gone;
    before = now;
  }
  auto db = TunedDb::open(file, Mode::read_write);
  PruneRequest request;
  request.damaged = true;
  db.prune(request, false);
  EXPECT_EQ(static_cast<std::int64_t>(db.discarded().size()), before);
  EXPECT_TRUE(db.check().empty()) << seed << ": " << db.check().front();
}

TEST(Quarantine, NoSequenceOfCommandsMakesADamagedRowSoundOrVanish) {
  int damaged = 0, discarded = 0;
  for (std::uint64_t seed = 44; seed <= 58 && !::testing::Test::HasFailure(); ++seed) {
    run_sequence(seed, damaged, discarded);
  }
  std::printf("%d damaged rows, %d of them replaced and named\n", damaged, discarded);
  EXPECT_GT(damaged, 15);
  EXPECT_GT(discarded, 0);
}

TEST(QuarantineLong, TwoThousandSequences) {
  int damaged = 0, discarded = 0;
  for (std::uint64_t seed = 1; seed <= 2000 && !::testing::Test::HasFailure(); ++seed) {
    run_sequence(seed, damaged, discarded);
  }
  EXPECT_GT(discarded, 200);
}

TEST(Quarantine, StatementsThatSealDamageAreRefused) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain(folder / "t.db")->exec("UPDATE winners SET median_us = 1 WHERE problem LIKE '% m=1 %'");
  Connection connection(folder / "t.db", Mode::read_write);
  const auto refused = [&](const std::string& sql) {
    return error_of([&] { connection.write([&](SQLite::Database& db) { db.exec(sql); }); });
  };
  std::string seal;
  connection.read([&](SQLite::Database& database) {
    seal = checksum_of(database, "winners", [](const std::string& name) { return name; });
  });
  EXPECT_NE(
      refused("UPDATE main.winners SET checksum = " + seal).find("would get a valid checksum"),
      std::string::npos);
  EXPECT_NE(refused("UPDATE main.winners SET regret = 2 WHERE problem LIKE '% m=2 %'")
                .find("would lose its checksum"),
            std::string::npos);
  EXPECT_NE(refused("INSERT INTO main.problems VALUES (9, 'k', 'o', 'f32', 'f32', '', 5)")
                .find("without its checksum"),
            std::string::npos);
  EXPECT_NE(refused("UPDATE winners SET regret = 2").find("view"), std::string::npos);
}

// A tune must not read the checksums of all trials that other problems ever had.
TEST(Quarantine, TrialsAreJudgedByProblem) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain plain(folder / "t.db");
  const auto of_problem = [](int m) {
    return fmt::format(
        "session IN (SELECT s.id FROM sessions s JOIN problems p ON p.id = s.problem "
        "WHERE p.key = '{}')",
        problem_of(m).key());
  };
  plain->exec("UPDATE trials SET median_us = 3.5 WHERE " + of_problem(2));
  plain->exec("UPDATE winners SET regret = 7.5 WHERE problem LIKE '% m=1 %'");
  const auto db = TunedDb::open(folder / "t.db", Mode::read_only);
  ASSERT_EQ(db.damaged_but_trials().size(), 1U);
  EXPECT_EQ(db.damaged_but_trials()[0].table, "winners");
  EXPECT_TRUE(db.damaged_trials(problem_of(1).key()).empty());
  const auto trials = db.damaged_trials(problem_of(2).key());
  ASSERT_FALSE(trials.empty());
  for (const DamagedRow& row : trials) {
    EXPECT_EQ(row.table, "trials");
    EXPECT_EQ(row.problem, problem_of(2).key());
  }
  EXPECT_EQ(db.damaged().size(), 1 + trials.size());
}

TEST(Quarantine, ARowWithoutAChecksumIsDamagedAndStaysSo) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain(folder / "t.db")->exec("UPDATE winners SET checksum = NULL WHERE problem LIKE '% m=2 %'");
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  EXPECT_EQ(db.results().size(), 3U);
  tune(db, 3, 1);
  ASSERT_EQ(db.damaged().size(), 1U);
  EXPECT_NE(db.damaged()[0].text().find(problem_of(2).key()), std::string::npos);
  EXPECT_NE(db.damaged()[0].text().find("has no checksum"), std::string::npos);
  EXPECT_EQ(db.damaged()[0].device, sample_device().name);
  EXPECT_TRUE(db.discarded().empty());
  tune(db, 2, 1);  // replaces it and reports that
  EXPECT_TRUE(db.damaged().empty());
  EXPECT_EQ(db.discarded().size(), 1U);
  EXPECT_TRUE(db.check().empty());
}

TEST(Quarantine, DamagedOriginsDoNotStandInTheWay) {
  for (const char* change :
       {"UPDATE devices SET name = 'another'", "UPDATE problems SET dims = 'm=7'",
        "UPDATE circumstances SET checksum = 7", "UPDATE sessions SET compiler = ''"}) {
    const TemporaryFolder folder;
    fill(folder / "t.db");
    Plain(folder / "t.db")->exec(change);
    const auto damaged = Plain(folder / "t.db").damaged();
    auto db = TunedDb::open(folder / "t.db", Mode::read_write);
    tune(db, 2, 77);
    const auto found = db.find_winner(sample_device().fingerprint(), problem_of(2).key(), true);
    ASSERT_TRUE(found) << change;
    EXPECT_EQ(found->winner.measurement.median_us, 77);
    EXPECT_EQ(Plain(folder / "t.db").damaged(), damaged) << change;
    PruneRequest request;
    request.damaged = true;
    EXPECT_GE(db.prune(request, false).damaged, damaged);
    EXPECT_TRUE(db.check().empty()) << change << ": " << db.check().front();
    EXPECT_TRUE(db.find_winner(sample_device().fingerprint(), problem_of(2).key(), true));
  }
}

TEST(Quarantine, RowsThatLostTheirDeviceFindNoNewOne) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain(folder / "t.db")->exec("DELETE FROM devices");
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  auto other = sample_device();
  other.card.uuid = "another";
  db.set_unsafe(other, {"f32", "crash", "it crashed", "", "now"});
  EXPECT_TRUE(db.ceilings(other.fingerprint()).empty());
  EXPECT_EQ(db.unsafe(other).size(), 1U);
  EXPECT_TRUE(db.results().empty());
  EXPECT_EQ(db.damaged().size(), 4U);  // the results
}

TEST(Quarantine, AShippedResultOfADamagedFormIsLeftOut) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  TunedDb::ship(TunedDb::open(folder / "t.db", Mode::read_only).contents(), folder / "s.db");
  fs::permissions(folder / "s.db", fs::perms(0644));
  Plain(folder / "s.db")->exec("UPDATE config_forms SET names = 'tiled BN BM' WHERE id = 1");
  const auto db = TunedDb::open(folder / "s.db", Mode::read_only);
  EXPECT_TRUE(db.results().empty());
  EXPECT_EQ(db.damaged().size(), 5U);  // the form and the rows that need it
}

TEST(Quarantine, WhatWasOverwrittenInPlaceIsNotStored) {
  const TemporaryFolder folder;
  const auto file = folder / "t.db";
  fill(file);
  const auto before = read_file(file);
  const auto stored = [&] {
    const auto db = TunedDb::open(file, Mode::read_only);
    return db.check().empty() &&
           db.find_winner(sample_device().fingerprint(), problem_of(8).key(), true).has_value();
  };
  for (const bool in_the_log : {true, false}) {
    for (const auto& content : {before, before.substr(0, 8192), std::string(5000, 'x')}) {
      for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(file.string() + suffix);
      write_file(file, before);
      std::string why;
      {
        auto db = TunedDb::open(file, Mode::read_write);
        tune(db, 8, 1);
        EXPECT_NO_THROW(db.confirm());
        if (!in_the_log) Plain(file)->exec("PRAGMA wal_checkpoint(TRUNCATE)");
        write_file(file, content);  // in place, like `cp`: the inode stays the same
        if (in_the_log) {
          try {
            db.confirm();
          } catch (const Error& error) {
            why = error.what();
          }
        } else {
          why = error_of([&] { db.confirm(); });
        }
        EXPECT_EQ(why.find('\n'), std::string::npos);
      }
      // Data in SQLite's log is recovered with it.
      EXPECT_TRUE(!why.empty() || stored()) << content.size();
    }
  }
}

TEST(Quarantine, OtherProcessesWritesAreNoLoss) {
  const TemporaryFolder folder;
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  tune(db, 1, 1);
  auto other = TunedDb::open(folder / "t.db", Mode::read_write);
  tune(other, 2, 1);
  EXPECT_NO_THROW(db.confirm());
  EXPECT_NO_THROW(other.confirm());
  EXPECT_NO_THROW(TunedDb::open(folder / "t.db", Mode::read_write).confirm());
}

TEST(Quarantine, RowsThatOtherProcessesReplaceAreNoLossButTheirReturnIs) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain plain(folder / "t.db");
  plain->exec("CREATE TEMP TABLE before AS SELECT * FROM winners");
  const auto write = [&](TunedDb& db, int number) {
    tune(db, 1, 100 + number);
    db.set_ceilings(sample_device(), {{"fma", 1.0 * number, 1, "d", "now"}});
    db.set_unsafe(sample_device(), {"f16", "crash", std::to_string(number), "", "now"});
  };
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  auto other = TunedDb::open(folder / "t.db", Mode::read_write);
  write(db, 1);
  write(other, 2);
  EXPECT_NO_THROW(db.confirm());
  EXPECT_NO_THROW(other.confirm());
  auto results = other.results();
  for (auto& result : results) result.regret = Regret{"m=9", 1.5, {}};
  other.set_regrets(results);
  EXPECT_NO_THROW(db.confirm());
  plain->exec("INSERT OR REPLACE INTO winners SELECT * FROM before");
  EXPECT_NE(error_of([&] { db.confirm(); }).find("winners"), std::string::npos);
  plain->exec("DELETE FROM winners");
  EXPECT_NE(error_of([&] { other.confirm(); }).find("winners"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::quarantine_test
