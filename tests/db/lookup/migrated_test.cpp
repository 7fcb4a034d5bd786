// Protects: look-ups answer with configurations of older templates, carried over and said to be,
// and tell of those that can't be. The database is an extract of the first one that was shipped for
// an H200 (2026-11-20), in which gemv had no parameter TN yet.
#include <gtest/gtest.h>

#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::migrated_test {
namespace {

using test::card;
using test::gemm;
using test::winner;

TEST(LookupMigrated, AnOldDatabaseAnswersAsTodaysTemplateMeansIt) {
  LookupFiles files = LookupFiles::none();
  files.application = {GRETA_TEST_DATA "/databases/gemv-without-tn.db"};
  const TunedDb db = TunedDb::open(files.application.front(), TunedDb::Mode::read_only);
  const auto stored = db.winners();
  ASSERT_EQ(stored.size(), 4U);
  for (const StoredWinner& result : stored) {
    EXPECT_FALSE(result.winner.config.has("TN"));
    const Lookup lookup = Lookup::open(result.device, files);
    const Answer& answer = lookup.find(result.problem);
    EXPECT_EQ(answer.origin_text(), "exact, application, migrated") << result.problem.key();
    EXPECT_EQ(answer.migrated, std::vector<std::string>{"TN=1 added"});
    EXPECT_EQ(answer.config["TN"], 1);
    for (const auto& [name, value] : result.winner.config.values) {
      EXPECT_EQ(answer.config[name], value);
    }
    EXPECT_TRUE(lookup.unreadable().empty());
  }
}

TEST(LookupMigrated, WhatCantBeCarriedOverIsToldOf) {
  const DeviceInfo here = card("gfx942", "aa");
  test::Databases databases;
  databases.add(winner(gemm(64, 64, 64), here, {"naive", {{"THREADS", 64}, {"GONE", 1}}}));
  const Lookup lookup = databases.open(here);
  EXPECT_EQ(lookup.find(gemm(64, 64, 64)).origin, LookupOrigin::predicted);
  ASSERT_EQ(lookup.unreadable().size(), 1U);
  const std::string line = lookup.unreadable().front();
  EXPECT_NE(line.find("own.db: the winner of gemm dtype=f32 out=f32 m=64 n=64 k=64 is not used"),
            std::string::npos)
      << line;
  EXPECT_NE(line.find("naive has no parameter GONE any more"), std::string::npos) << line;
}

}  // namespace
}  // namespace greta::test::migrated_test
