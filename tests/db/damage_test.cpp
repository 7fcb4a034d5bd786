// Protects: damage to a file is an error or harmless, and check() finds changed values and schemas.

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "tests/db/fixture.hpp"
#include "tests/db/unguarded_database.hpp"
#include "tests/layers.hpp"

namespace greta::test::damage_test {
namespace {

using Mode = TunedDb::Mode;

/// Returns the contents of a database after a finished session.
std::string real_file(const TemporaryFolder& folder) {
  const auto file = folder / "real.db";
  {
    auto db = TunedDb::open(file, Mode::read_write);
    const auto session = db.begin_session(sample_session());
    for (int i = 0; i < 60; ++i) {
      auto trial = sample_trial(std::to_string(i));
      trial.log.assign(static_cast<std::size_t>(i * 37), 'x');
      db.add_trial(session, trial);
    }
    db.set_winner(session, sample_winner());
    db.set_finalists(session, sample_finalists());
    db.set_ceilings(sample_device(), {{"copy_gbps", 4000, 1.5, "1.2.3", ""}});
    db.end_session(session, "done");
  }
  return read_file(file);
}

enum class Outcome { open_failed, call_failed, unsound, works };

/// Opens a damaged file and calls everything. Any result other than success or an Error ends the
/// test.
Outcome use(const std::filesystem::path& file, Mode mode) {
  const auto prefix = file.string() + ": ";
  bool opened = false;
  try {
    auto db = TunedDb::open(file, mode);
    opened = true;
    db.counts();
    db.winners();
    db.trials(1);
    db.finalists(1);
    db.ceilings(sample_device().fingerprint());
    db.find_winner(sample_device().fingerprint(), sample_problem().key(), true);
    if (mode == Mode::read_only) return db.check().empty() ? Outcome::works : Outcome::unsound;
    db.add_trial(1, sample_trial("more"));
    return Outcome::works;
  } catch (const Error& error) {
    EXPECT_EQ(std::string(error.what()).substr(0, prefix.size()), prefix);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
  return opened ? Outcome::call_failed : Outcome::open_failed;
}

/// Uses the file in both modes. A failed open leaves the file unchanged, and reading never changes
/// it.
Outcome use_damaged(const TemporaryFolder& folder, const std::string& content) {
  const auto file = folder / "damaged.db";
  write_file(file, content);
  const auto reading = use(file, Mode::read_only);
  EXPECT_TRUE(read_file(file) == content) << "reading changed the file";
  const auto writing = use(file, Mode::read_write);
  if (writing == Outcome::open_failed) {
    EXPECT_TRUE(read_file(file) == content) << "a failed open changed the file";
  }
  std::filesystem::remove(file);
  EXPECT_EQ(folder.listing(), "real.db");
  return reading;
}

TEST(Damage, FlippedBitsAreErrorsOrHarmless) {
  const TemporaryFolder folder;
  const auto good = real_file(folder);
  std::mt19937_64 random(23);
  int found = 0;
  for (int i = 0; i < 220; ++i) {
    // The header, the page of the schema, and the whole file.
    const std::size_t range = i < 60 ? 100 : i < 120 ? 4096 : good.size();
    auto bad = good;
    const auto position = random() % range;
    bad[position] = static_cast<char>(bad[position] ^ (1 << random() % 8));
    if (use_damaged(folder, bad) != Outcome::works) ++found;
    ASSERT_FALSE(HasFailure()) << "position " << position;
  }
  EXPECT_GT(found, 20);
}

TEST(Damage, ShortenedFilesAreErrors) {
  const TemporaryFolder folder;
  const auto good = real_file(folder);
  std::mt19937_64 random(29);
  std::vector<std::size_t> lengths = {1, 15, 16, 17, 99, 100, 101, 511, 512, 4095, 4096, 4097};
  for (int i = 0; i < 30; ++i) lengths.push_back(1 + random() % (good.size() - 1));
  for (const auto length : lengths) {
    EXPECT_NE(use_damaged(folder, good.substr(0, length)), Outcome::works) << length;
    ASSERT_FALSE(HasFailure()) << "length " << length;
  }
}

TEST(Damage, OverwrittenPagesAreErrorsOrHarmless) {
  const TemporaryFolder folder;
  const auto good = real_file(folder);
  std::mt19937_64 random(31);
  for (std::size_t page = 1; page < good.size() / 4096; ++page) {
    auto bad = good;
    for (std::size_t i = 0; i < 4096; ++i) bad[page * 4096 + i] = static_cast<char>(random());
    use_damaged(folder, bad);
    ASSERT_FALSE(HasFailure()) << "page " << page;
  }
}

TEST(Damage, AChangedValueIsFoundInEveryTable) {
  const TemporaryFolder folder;
  real_file(folder);
  const auto file = folder / "real.db";
  const std::vector<std::string> changes{
      "UPDATE devices SET last_seen_utc = 'never'",
      "UPDATE problems SET dims = ''",
      "UPDATE sessions SET driver = 'another' WHERE id = 1",
      "UPDATE trials SET median_us = median_us + 1e-12 WHERE id = 7",
      "UPDATE finalists SET samples_us = replace(samples_us, '31', '32') WHERE place = 2",
      "UPDATE circumstances SET compiler = ''",
      "UPDATE winners SET config = replace(config, '6', '7')",
      "UPDATE ceilings SET value = 4001"};
  const auto good = read_file(file);
  for (const auto& change : changes) {
    write_file(file, good);
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec(change);
    const auto found = TunedDb::open(file, Mode::read_only).check();
    const bool origin = change.find("devices") != std::string::npos ||
                        change.find("circumstances") != std::string::npos;
    ASSERT_EQ(found.size(), origin ? 2U : 1U) << change;  // the winner has lost its origin as well
    EXPECT_NE(found[0].find("does not match its checksum"), std::string::npos) << found[0];
  }
}

TEST(Damage, AChangedValueIsFoundInEveryColumn) {
  const TemporaryFolder folder;
  fill(folder / "filled.db");
  Plain database(folder / "filled.db");
  std::vector<std::pair<std::string, std::string>> columns;  // with their tables
  SQLite::Statement select(*database, R"(
    SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
    WHERE c.name <> 'checksum' AND EXISTS (
      SELECT 1 FROM pragma_table_info(m.name) k WHERE k.name = 'checksum'))");
  while (select.executeStep()) {
    columns.emplace_back(select.getColumn(0).getString(), select.getColumn(1).getString());
  }
  EXPECT_GT(columns.size(), 100U);
  for (const auto& [table, column] : columns) {
    const auto key = fmt::format("{}", fmt::join(key_columns(*database, table), ", "));
    database->exec("BEGIN");
    const int changed = database->exec(fmt::format(
        "UPDATE {0} SET {1} = CASE typeof({1}) WHEN 'text' THEN {1} || 'x' WHEN 'null' THEN 7"
        " WHEN 'blob' THEN CAST({1} || 'x' AS BLOB)"
        " ELSE {1} + 1000003 END WHERE ({2}) = (SELECT {2} FROM {0} LIMIT 1)",
        table, '"' + column + '"', key));
    const bool is_empty = table == "config_forms";  // only shipped databases have rows in it
    EXPECT_EQ(changed, is_empty ? 0 : 1) << table;
    EXPECT_EQ(database.damaged(), changed) << table << '.' << column;
    database->exec("ROLLBACK");
  }
}

TEST(Damage, AChangedSchemaIsFound) {
  const TemporaryFolder folder;
  real_file(folder);
  SQLite::Database(folder / "real.db", SQLite::OPEN_READWRITE)
      .exec("ALTER TABLE config_forms RENAME COLUMN names TO nbmes; DROP INDEX trials_by_session");
  const auto found = TunedDb::open(folder / "real.db", Mode::read_only).check();
  ASSERT_GE(found.size(), 2U);
  EXPECT_EQ(found[0], "schema: there is no index trials_by_session of trials");
  EXPECT_EQ(found[1], "schema: table config_forms is not as it was made");
}

TEST(Damage, CheckReportsIt) {
  const TemporaryFolder folder;
  auto bad = real_file(folder);
  bad.replace(bad.size() - 4096, 4096, std::string(4096, '\x5a'));
  write_file(folder / "t.db", bad);
  const auto db = TunedDb::open(folder / "t.db", Mode::read_only);
  const auto found = db.check();
  ASSERT_FALSE(found.empty());
  // One line, which does not claim that the file was changed while it was open.
  EXPECT_EQ(found[0].find("***"), std::string::npos) << found[0];
  try {
    db.confirm();
    FAIL() << "a damaged page passed";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("t.db: corrupt ("), std::string::npos) << text;
    EXPECT_EQ(text.find("***"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace greta::test::damage_test
