// Protects: migrations to newer schemas keep all data, happen once, are undone if they fail, and
// never touch databases of a newer GRETA.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "db/json.hpp"
#include "db/sqlite/connection.hpp"
#include "db/sqlite/rows.hpp"
#include "tests/db/fixture.hpp"
#include "tests/layers.hpp"

namespace greta::test::migration_test {
namespace {

using Mode = TunedDb::Mode;

/// Returns the real migration steps, followed by these.
ConnectionOptions with_steps(std::initializer_list<std::string_view> more) {
  ConnectionOptions options;
  for (const auto sql : more) {
    options.migrations.push_back({static_cast<int>(options.migrations.size()) + 1, sql});
  }
  return options;
}

int get_int(const Connection& connection, const std::string& query) {
  int value = 0;
  connection.read([&](SQLite::Database& database) { value = database.execAndGet(query).getInt(); });
  return value;
}

void fill(const std::filesystem::path& file) {
  auto db = TunedDb::open(file, Mode::read_write);
  const auto session = db.begin_session(sample_session());
  for (int i = 0; i < 10; ++i) db.add_trial(session, sample_trial(std::to_string(i)));
  db.set_winner(session, sample_winner());
}

constexpr std::string_view add_column = "ALTER TABLE trials ADD COLUMN note TEXT";
constexpr std::string_view add_table =
    "CREATE TABLE extra (id INTEGER PRIMARY KEY) STRICT;"
    "INSERT INTO extra SELECT id FROM trials";

TEST(Migration, FilesAreNumberedWithoutGaps) {
  for (std::size_t i = 0; i < schema_files().size(); ++i) {
    EXPECT_EQ(std::stoul(std::string(schema_files()[i].path.substr(0, 4))), i + 1);
  }
  EXPECT_EQ(TunedDb::schema_version(), static_cast<int>(schema_files().size()));
}

TEST(Migration, OlderDatabaseIsBroughtUpToDate) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const Connection connection(folder / "t.db", Mode::read_write,
                              with_steps({add_column, add_table}));
  EXPECT_EQ(get_int(connection, "PRAGMA user_version"), TunedDb::schema_version() + 2);
  EXPECT_EQ(get_int(connection, "SELECT count(*) FROM trials WHERE note IS NULL"), 10);
  EXPECT_EQ(get_int(connection, "SELECT count(*) FROM main.extra"), 10);
  EXPECT_EQ(get_int(connection, "SELECT count(*) FROM winners"), 1);
}

constexpr auto schema_1_winner = R"(
  INSERT INTO main.devices VALUES (1, 'FINGERPRINT', 'gpu', 'driver 2', 'INFO', 'then', 'later');
  INSERT INTO main.problems VALUES (1, 'gemm dtype=f16 out=f32 layout=nt m=16 n=32 k=4096', 'gemm', 'f16',
    'f32', 'm=16 n=32 k=4096');
  INSERT INTO main.sessions VALUES (7, 1, 1, 'vulkan:2', '0.1.0', '0123abcd', 'driver 1', 'compiler',
    'random', '60s', '5', 1, '', '2026-11-20T12:00:00Z', 'done', '2026-11-20T12:01:00Z');
  INSERT INTO main.winners VALUES (1, 1, 1, 7, 'split_k BM=64 SPLIT=8', 0, 12.5, 12.25, 12.75, 25, 2,
    1.9, 2.1, 0.99, 4,
    '{"batch":3,"clocks":"SM 1980 MHz","cold":true,"dropped":2,"flush_bytes":4096,"high_us":12.75,
      "low_us":12.25,"median_us":12.5,"p99_us":"NaN","raced":false,"samples_us":[12.5,12.25,"NaN"]}',
    '[25,24.5]', 0.75,
    '{"bound":2e-6,"detail":"","error":"Infinity","method":"16 rows","passed":true}', '[]',
    '[{"config":{"values":[["BM",32],["SPLIT",8]],"variant":"split_k"},"ratio_to_winner":1.001},
      {"config":{"values":[],"variant":"naive"},"ratio_to_winner":"Infinity"}]',
    '2026-11-20T12:01:00Z'))";

TEST(Migration, WinnersOfSchema1KeepEverything) {
  const TemporaryFolder folder;
  ConnectionOptions first;
  first.migrations.resize(1);
  std::string sql = schema_1_winner;
  sql.replace(sql.find("FINGERPRINT"), 11, sample_device().fingerprint());
  sql.replace(sql.find("INFO"), 4, to_json(sample_device()).dump());
  Connection(folder / "t.db", Mode::read_write, first).write([&](SQLite::Database& database) {
    database.exec(sql);
  });

  const auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  const auto found = db.find_winner(sample_device().fingerprint(), sample_problem().key(), true);
  ASSERT_TRUE(found);
  Winner expected = sample_winner();
  expected.measurement.samples_us = {12.5, 12.25, std::nan("")};
  expected.measurement.p99_us = std::nan("");
  expected.measurement.flush_bytes = 4096;
  expected.default_samples_us = {25, 24.5};
  expected.kernels.clear();
  expected.verdict = {true, std::numeric_limits<double>::infinity(), 2e-6, "16 rows", ""};
  expected.ties[1].config = {"naive", {}};
  expect_equal(found->winner, expected);
  EXPECT_EQ(found->session, 7);
  EXPECT_EQ(found->provenance.driver, "driver 1");
  EXPECT_FALSE(found->regret);
  EXPECT_TRUE(db.check().empty()) << db.check().front();
}

TEST(Migration, FailedStepIsUndoneAndEarlierOnesStay) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const auto broken = with_steps({add_column, "CREATE TABLE half (id INTEGER); DROP TABLE absent"});
  const auto line = error_of([&] { Connection(folder / "t.db", Mode::read_write, broken); });
  EXPECT_EQ(line, (folder / "t.db").string() + ": no such table: absent");

  const Connection connection(folder / "t.db", Mode::read_write, with_steps({add_column}));
  EXPECT_EQ(get_int(connection, "PRAGMA user_version"), TunedDb::schema_version() + 1);
  EXPECT_EQ(get_int(connection, "SELECT count(*) FROM sqlite_schema WHERE name = 'half'"), 0);
  EXPECT_EQ(get_int(connection, "SELECT count(*) FROM trials"), 10);
}

TEST(Migration, StepThatBreaksReferencesIsUndone) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const auto broken = with_steps({"DELETE FROM sessions"});
  const auto line = error_of([&] { Connection(folder / "t.db", Mode::read_write, broken); });
  EXPECT_NE(line.find("breaks a reference of table"), std::string::npos) << line;
  const auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  EXPECT_EQ(db.counts().sessions, 1);
  EXPECT_TRUE(db.check().empty());
}

TEST(Migration, ProcessesThatMigrateTogetherDoItOnce) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  std::vector<pid_t> children;
  for (int process = 0; process < 6; ++process) {
    children.push_back(start_child([&] {
      Connection connection(folder / "t.db", Mode::read_write, with_steps({add_column, add_table}));
      EXPECT_EQ(get_int(connection, "SELECT count(*) FROM main.extra"), 10);
    }));
  }
  for (const auto child : children) EXPECT_TRUE(succeeded(child));
}

TEST(Migration, ReaderMigratesACopyAndLeavesTheFile) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const auto before = read_file(folder / "t.db");
  {
    Connection connection(folder / "t.db", Mode::read_only, with_steps({add_column, add_table}));
    EXPECT_EQ(get_int(connection, "SELECT count(*) FROM main.extra"), 10);
    EXPECT_EQ(get_int(connection, "SELECT count(*) FROM trials"), 10);
  }
  EXPECT_EQ(read_file(folder / "t.db"), before);
  EXPECT_EQ(folder.listing(), "t.db");
}

TEST(Migration, NewerSchemaIsRefusedAndLeftAlone) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  ConnectionOptions newer;
  const int next = TunedDb::schema_version() + 1;
  newer.migrations.push_back({next, "SELECT 1"});
  Connection(folder / "t.db", Mode::read_write, newer);
  const auto before = read_file(folder / "t.db");
  for (const auto mode : {Mode::read_write, Mode::read_only}) {
    EXPECT_EQ(open_error(folder / "t.db", mode),
              (folder / "t.db").string() + ": written by a newer GRETA (schema " +
                  std::to_string(next) + "; this one knows " +
                  std::to_string(TunedDb::schema_version()) + ")");
  }
  EXPECT_EQ(read_file(folder / "t.db"), before);
  EXPECT_EQ(folder.listing(), "t.db");
}

TEST(Migration, NewerSchemaIsSeenInTheLogToo) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const Connection newer(folder / "t.db", Mode::read_write, with_steps({add_column}));
  // The new schema is only in the log until `newer` closes.
  EXPECT_NE(open_error(folder / "t.db").find("written by a newer GRETA"), std::string::npos);
  EXPECT_EQ(get_int(newer, "SELECT count(*) FROM trials WHERE note IS NULL"), 10);
}

}  // namespace
}  // namespace greta::test::migration_test
