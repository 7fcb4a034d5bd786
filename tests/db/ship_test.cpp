// Protects: a shipped database is small, complete, opened like any other, never written, and every
// change to it is detected.
#include <SQLiteCpp/SQLiteCpp.h>
#include <gtest/gtest.h>

#include <random>

#include "db/sqlite/connection.hpp"
#include "tests/db/fixture.hpp"
#include "tests/db/random_contents.hpp"
#include "tests/layers.hpp"

namespace greta::test::ship_test {
namespace {

using Mode = TunedDb::Mode;

/// Returns a result like those of real databases: GEMMs, which have the most parameters, with two
/// ties that differ from the winner in two parameters.
StoredWinner gemm_result(int number, std::mt19937_64& random) {
  const auto random_config = [&] {
    Config config{"tiled", {}};
    for (const char* name : {"BM", "BN", "TM", "TN", "LX", "BK", "STAGES", "PAD", "VA", "VB",
                             "UNROLL", "SWIZZLE", "SUBGROUP"}) {
      config.values.emplace_back(name, 1 << random() % 8);
    }
    return config;
  };
  const auto random_time = [&] { return 1.0 + static_cast<double>(random() >> 11) * 0x1p-53; };
  StoredWinner result;
  result.problem = sample_problem();
  result.problem.dims = {{"m", 1024 + number}, {"n", 4096}, {"k", 4096}};
  result.device = sample_device();
  result.provenance = {"0.1.0", "e8f14ebb87a13c8781f782524a10754a", "NVIDIA 580.159.04, CUDA 13.0",
                       "NVRTC 13.0.88, options 1", "2026-11-20T12:00:00Z"};
  Winner& winner = result.winner = sample_winner();
  winner.config = random_config();
  for (int tie = 0; tie < 2; ++tie) {
    auto config = winner.config;
    for (int i = 0; i < 2; ++i) config.values[random() % config.values.size()].second *= 2;
    winner.ties[static_cast<std::size_t>(tie)] = {config, tie == 0 ? 1.00123 : 1.00456};
  }
  for (double* value :
       {&winner.measurement.median_us, &winner.measurement.low_us, &winner.measurement.high_us,
        &winner.measurement.p99_us, &winner.default_us, &winner.speedup, &winner.speedup_low,
        &winner.speedup_high, &winner.roofline, &winner.verdict.error, &winner.verdict.bound}) {
    *value = random_time();
  }
  winner.verdict.method = "full";
  winner.measurement.flush_bytes = 209'715'200;
  winner.measurement.clocks = "SM 1980 MHz, memory 2619 MHz";
  for (int i = 0; i < 12; ++i) winner.measurement.samples_us.push_back(random_time());
  result.regret = Regret{"m=4096 n=4096 k=4096", random_time(), Regret::Source::trials};
  return result;
}

Contents gemm_contents(int count) {
  std::mt19937_64 random(3);
  Contents contents;
  contents.devices = {{sample_device(), "2026-11-20T12:00:00Z", "2026-11-20T12:00:00Z"}};
  for (int i = 0; i < count; ++i) contents.results.push_back(gemm_result(i, random));
  return contents;
}

TEST(Ship, TenThousandWinnersFitIntoFourMegabytes) {
  const TemporaryFolder folder;
  const auto file = folder / "tuned.db";
  TunedDb::ship(gemm_contents(10'000), file);
  EXPECT_LE(std::filesystem::file_size(file), 4'000'000U);
  RecordProperty("bytes", static_cast<int>(std::filesystem::file_size(file)));
  EXPECT_EQ(folder.listing(), "tuned.db");  // no log, no draft
  const auto db = TunedDb::open(file, Mode::read_only);
  EXPECT_TRUE(db.shipped());
  EXPECT_EQ(db.counts().winners, 10'000);
  EXPECT_TRUE(db.check().empty());
}

TEST(Ship, HoldsAllButRawDataAndReadsAsAnyOther) {
  const TemporaryFolder folder;
  std::mt19937_64 random(5);
  auto contents = random_contents(random);
  while (contents.results.size() < 3) contents = random_contents(random);
  contents.results.push_back(gemm_result(1, random));
  contents.results.back().device = contents.devices.front().info;
  TunedDb::ship(contents, folder / "tuned.db");
  for (auto& result : contents.results) {
    result.winner.measurement.samples_us.clear();
    result.winner.default_samples_us.clear();
    result.winner.kernels.clear();
  }
  const auto db = TunedDb::open(folder / "tuned.db", Mode::read_only);
  EXPECT_EQ(canonical(db.contents()), canonical(contents));
  EXPECT_EQ(db.counts().trials, 0);
  const auto& wanted = contents.results.back();
  const auto found = db.find_winner(wanted.device.fingerprint(), wanted.problem.key(), true);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->winner.config, wanted.winner.config);
  EXPECT_EQ(found->winner.ties[1].config, wanted.winner.ties[1].config);
}

TEST(Ship, IsNeverWritten) {
  const TemporaryFolder folder;
  TunedDb::ship(gemm_contents(3), folder / "tuned.db");
  const auto before = read_file(folder / "tuned.db");
  EXPECT_NE(open_error(folder / "tuned.db", Mode::read_write).find("shipped"), std::string::npos);
  TunedDb::open(folder / "tuned.db", Mode::read_only).winners();
  EXPECT_EQ(read_file(folder / "tuned.db"), before);
  EXPECT_EQ(folder.listing(), "tuned.db");
}

TEST(Ship, OneOfAnOlderSchemaIsStillRead) {
  const TemporaryFolder folder;
  ConnectionOptions older;
  older.migrations.resize(2);
  Connection(folder / "loose.db", Mode::read_write, older).write_shipped(folder / "tuned.db");
  const auto db = TunedDb::open(folder / "tuned.db", Mode::read_only);
  EXPECT_TRUE(db.shipped());
  EXPECT_TRUE(db.contents().results.empty());
  EXPECT_TRUE(db.check().empty()) << db.check().front();
}

TEST(Ship, MissingAndExchangedRowsAreFound) {
  const TemporaryFolder folder;
  const auto file = folder / "tuned.db";
  TunedDb::ship(gemm_contents(30), file);
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const auto good = read_file(file);
  for (const auto* change :
       {"DELETE FROM winners WHERE problem LIKE '%m=1030 %'", "DELETE FROM config_forms",
        "UPDATE winners SET speedup = 9 WHERE problem LIKE '%m=1030 %'",
        "DELETE FROM manifest WHERE name = 'winners'"}) {
    write_file(file, good);
    SQLite::Database(file, SQLite::OPEN_READWRITE).exec(change);
    EXPECT_FALSE(TunedDb::open(file, Mode::read_only).check().empty()) << change;
  }
}

TEST(Ship, MergesBackIntoAnOrdinaryDatabase) {
  const TemporaryFolder folder;
  const auto contents = gemm_contents(20);
  TunedDb::ship(contents, folder / "tuned.db");
  auto db = TunedDb::open(folder / "own.db", Mode::read_write);
  db.write(contents);
  const auto shipped = TunedDb::open(folder / "tuned.db", Mode::read_only).contents();
  const auto report = db.merge(shipped).report;
  EXPECT_EQ(report.worse, 20U);  // the raw samples are here
  EXPECT_EQ(canonical(db.contents()), canonical(contents));
}

}  // namespace
}  // namespace greta::test::ship_test
