// Protects: the guards of a connection work with any other tables in the file, and removing damaged
// rows reports every row that is removed.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "db/sqlite/checksums.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/unguarded_database.hpp"
#include "tests/layers.hpp"

namespace greta::test::guard_test {
namespace {

using Mode = TunedDb::Mode;

TEST(Guard, TablesOfOthersMayHaveAnyName) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  std::string wide = "(";  // more columns than one checksum can cover
  for (int i = 0; i < 100; ++i) wide += fmt::format("c{}, ", i);
  wide += "checksum)";
  const auto others = [&](const std::string& table) {
    return Plain(folder / "t.db")
        ->execAndGet(fmt::format("SELECT count(*) FROM {} WHERE checksum = 5", table))
        .getInt();
  };
  for (const char* name : {"written", "replaced", "discarded", "greta_written", "Greta_Replaced",
                           "GRETA_DISCARDED", "a\"b", "it's", "select", "winners after INSERT"}) {
    for (const std::string& columns :
         {std::string("(checksum)"), std::string("(\"a\"\"'b\" PRIMARY KEY, checksum INTEGER)"),
          wide}) {
      SCOPED_TRACE(fmt::format("{} {}", name, columns));
      std::string quoted = name;
      if (const auto at = quoted.find('"'); at != quoted.npos) quoted.insert(at, "\"");
      quoted = "\"" + quoted + "\"";
      Plain(folder / "t.db")->exec(fmt::format("CREATE TABLE {} {}", quoted, columns));
      Plain(folder / "t.db")->exec(fmt::format("INSERT INTO {} (checksum) VALUES (5)", quoted));
      {
        auto db = TunedDb::open(folder / "t.db", Mode::read_write);
        tune(db, 2, 33);
        EXPECT_NO_THROW(db.confirm());
        EXPECT_TRUE(db.damaged().empty());
        EXPECT_TRUE(db.discarded().empty());
        EXPECT_EQ(db.results().size(), 4U);
        PruneRequest request;
        request.damaged = true;
        EXPECT_EQ(db.prune(request, false).damaged, 0);
        EXPECT_FALSE(db.check().empty()) << "verify says that it is there";
      }
      EXPECT_EQ(others(quoted), 1) << "its row is as it was";
      Plain(folder / "t.db")->exec(fmt::format("DROP TABLE {}", quoted));
    }
  }
}

// A new table of the schema must be added to those with checked rows.
TEST(Guard, KnowsAllTablesOfTheSchemaThatHaveChecksums) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  Plain file(folder / "t.db");
  std::vector<std::string> tables;
  SQLite::Statement select(*file, R"(
    SELECT m.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
    WHERE m.type = 'table' AND c.name = 'checksum' ORDER BY m.name)");
  while (select.executeStep()) tables.push_back(select.getColumn(0).getString());
  EXPECT_GT(tables.size(), 5U);
  EXPECT_EQ(sealed_tables(*file), tables);
}

// Removing damaged rows reports every intact row that is removed with them.
TEST(Guard, PruneNamesTheSoundRowsThatGoWithDamagedOnes) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  const auto rows_of = [](const Pruned& pruned, std::string_view table) {
    return std::count_if(pruned.orphans.begin(), pruned.orphans.end(),
                         [&](const DamagedRow& row) { return row.table == table; });
  };
  Plain(folder / "t.db")->exec("UPDATE sessions SET compiler = char(27) || 'x' WHERE id = 1");
  auto db = TunedDb::open(folder / "t.db", Mode::read_write);
  PruneRequest request;
  request.damaged = true;
  const Pruned rehearsed = db.prune(request, true);
  const Pruned pruned = db.prune(request, false);
  EXPECT_EQ(rehearsed.orphans.size(), pruned.orphans.size());
  EXPECT_EQ(pruned.damaged, 1);
  EXPECT_EQ(pruned.trials, 3);
  EXPECT_EQ(rows_of(pruned, "trials"), 3);
  EXPECT_EQ(rows_of(pruned, "comparisons"), 1);
  EXPECT_EQ(rows_of(pruned, "finalists"), std::ssize(sample_finalists()));
  EXPECT_EQ(std::ssize(pruned.orphans), 4 + std::ssize(sample_finalists()));
  Plain(folder / "t.db")->exec("UPDATE devices SET name = char(27) || 'x'");
  const Pruned all = db.prune(request, false);
  for (const char* table :
       {"circumstances", "ceilings", "unsafe", "sessions", "winners", "trials", "finalists"}) {
    EXPECT_GT(rows_of(all, table), 0) << table;
  }
  for (const auto& row : all.orphans) {
    EXPECT_EQ(row.text().find('\x1b'), std::string::npos);
    if (row.table == "sessions") {
      EXPECT_NE(row.text().find(sample_problem().op), std::string::npos) << row.text();
    }
  }
  EXPECT_TRUE(db.check().empty());
}

}  // namespace
}  // namespace greta::test::guard_test
