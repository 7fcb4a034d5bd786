// Protects: databases of schema 4 keep their contents. Attention's causal=1 became mask=causal, and
// rope's output=in_place became place=in. Copies of both kinds of databases were written by GRETA
// 0.1.
#include "db/earlier_keys.hpp"

#include <gtest/gtest.h>

#include "db/lookup/lookup.hpp"
#include "db/merge.hpp"
#include "db/sqlite/connection.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"

namespace greta::test::earlier_keys_test {
namespace {

using Mode = TunedDb::Mode;

constexpr const char* causal =
    "attention dtype=f16 out=f16 mask=causal batch=1 heads=2 kv_heads=2 q=16 kv=32 dim=16";
constexpr const char* plain =
    "attention dtype=f16 out=f16 batch=1 heads=2 kv_heads=2 q=16 kv=64 dim=16";
constexpr const char* rope =
    "rope dtype=f16 out=f16 place=in tokens=8 heads=2 dim=16 positions=4096";

std::filesystem::path data(const char* name) {
  return std::filesystem::path(GRETA_TEST_DATA) / "databases" / name;
}

class Schema4 : public testing::Test {
 protected:
  Schema4() { std::filesystem::copy_file(data("own-schema4.db"), file_); }

  void damage(const std::string& sql) {
    SQLite::Database database(file_.string(), SQLite::OPEN_READWRITE);
    database.exec(sql);
  }

  TemporaryFolder folder_;
  std::filesystem::path file_ = folder_ / "own.db";
};

TEST(EarlierKeys, AreRead) {
  for (const auto& [earlier, today] : std::vector<std::pair<std::string, std::string>>{
           {"attention dtype=f16 out=f16 q=1 causal=1",
            "attention dtype=f16 out=f16 mask=causal q=1"},
           {"attention dtype=f16 out=f16 scale=0.5 q=1 causal=0",
            "attention dtype=f16 out=f16 scale=0.5 q=1"},
           {"rope dtype=f32 out=f32 style=half output=in_place heads=2",
            "rope dtype=f32 out=f32 style=half place=in heads=2"},
           {"softmax dtype=f32 out=f32 mask=causal rows=1",
            "softmax dtype=f32 out=f32 mask=causal rows=1"}}) {
    EXPECT_EQ(today_key(earlier), today);
    EXPECT_EQ(today_key(today), today);
  }
  EXPECT_EQ(today_dims("q=1 causal=1"), "q=1");
  EXPECT_EQ(today_key("attention dtype=f16"), "attention dtype=f16");
}

TEST_F(Schema4, KeepsItsWinnersAndTrials) {
  const TunedDb db = TunedDb::open(file_, Mode::read_write);
  EXPECT_TRUE(db.check().empty());
  const auto winners = db.winners();
  ASSERT_EQ(winners.size(), 4U);
  const std::string device = winners.front().device.fingerprint();
  for (const char* key : {causal, plain, rope, "gemm dtype=f32 out=f32 m=64 n=64 k=64"}) {
    ASSERT_TRUE(catalog().read(key)) << key;
    const auto found = db.find_winner(device, key, true);
    ASSERT_TRUE(found) << key;
    EXPECT_EQ(found->problem.key(), key);
    EXPECT_FALSE(db.fastest_configs(device, key, true, 3).empty()) << key;
  }
  for (const auto& session : db.sessions()) {
    EXPECT_FALSE(db.trials(session.id).empty()) << session.problem.key();
  }
}

// While the flag was a dimension, problems with different masks were neighbours.
TEST_F(Schema4, ForgetsWhatTheOtherMaskCosts) {
  {
    SQLite::Database before(file_.string(), SQLite::OPEN_READONLY);
    EXPECT_EQ(before.execAndGet("SELECT count(neighbour) FROM winners").getInt(), 2);
  }
  for (const auto& winner : TunedDb::open(file_, Mode::read_write).winners()) {
    EXPECT_FALSE(winner.regret) << winner.problem.key();
  }
}

TEST_F(Schema4, StaysDamagedWhereItIs) {
  damage("UPDATE winners SET median_us = median_us * 2 WHERE problem LIKE '%causal=1'");
  const TunedDb db = TunedDb::open(file_, Mode::read_write);
  EXPECT_EQ(db.winners().size(), 3U);
  EXPECT_FALSE(db.check().empty());
}

TEST(ShippedSchema4, IsReadAsIfItHadBeenRewritten) {
  const auto file = data("shipped-schema4.db");
  const TunedDb db = TunedDb::open(file, Mode::read_only);
  const auto winners = db.winners();
  ASSERT_EQ(winners.size(), 4U);
  const DeviceInfo device = winners.front().device;
  EXPECT_TRUE(db.find_winner(device.fingerprint(), causal, true));
  EXPECT_TRUE(db.find_winner(device.fingerprint(), rope, true));
  LookupFiles files;
  files.application = {file};
  const Lookup lookup = Lookup::open(device, files);
  for (const char* key : {causal, plain, rope}) {
    EXPECT_EQ(lookup.find(Problem::parse(key).value()).origin, LookupOrigin::exact) << key;
  }
  EXPECT_TRUE(lookup.unreadable().empty());
  const TemporaryFolder folder;
  TunedDb own = TunedDb::open(folder / "own.db", Mode::read_write);
  own.merge(db.contents());
  EXPECT_TRUE(own.find_winner(device.fingerprint(), causal, true));
  EXPECT_TRUE(own.check().empty());
}

}  // namespace
}  // namespace greta::test::earlier_keys_test
