// Protects: the guards of a connection stand beside whatever tables a file has, and who removes
// what is damaged learns of each row that goes.
#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/db/fixture.hpp"
#include "tests/db/plain.hpp"

namespace greta {
namespace {

using Mode = TunedDb::Mode;

TEST(Guard, TablesOfOthersMayHaveAnyName) {
  const TemporaryFolder folder;
  fill(folder / "t.db");
  for (const char* name : {"written", "replaced", "discarded", "greta_written", "Greta_Replaced",
                           "GRETA_DISCARDED", "a\"b", "it's", "select", "winners after INSERT"}) {
    for (const char* columns :
         {"(x)", "(checksum)", "(\"a\"\"'b\" PRIMARY KEY, checksum INTEGER)"}) {
      SCOPED_TRACE(fmt::format("{} {}", name, columns));
      std::string quoted = name;
      if (const auto at = quoted.find('"'); at != quoted.npos) quoted.insert(at, "\"");
      Plain(folder / "t.db")->exec(fmt::format("CREATE TABLE \"{}\" {}", quoted, columns));
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
      Plain(folder / "t.db")->exec(fmt::format("DROP TABLE \"{}\"", quoted));
    }
  }
}

// Who removes what is damaged learns of each sound row that goes with it.
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
  EXPECT_EQ(pruned.orphans.size(), 4U);
  Plain(folder / "t.db")->exec("UPDATE devices SET name = char(27) || 'x'");
  const Pruned all = db.prune(request, false);
  for (const char* table :
       {"circumstances", "ceilings", "unsafe", "sessions", "winners", "trials"}) {
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
}  // namespace greta
