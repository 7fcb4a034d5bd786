// CSV files: what is written is read back, and damage is told with its line.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/report/csv.hpp"

namespace greta::test::report_csv_test {
namespace {

CsvRow example() {
  CsvRow row;
  row.op = "gemm";
  row.dtype = "f16";
  row.out_dtype = "f32";
  row.problem = "m=1 n=2 k=3";
  row.attributes = "layout=nt epilogue=bias,silu";
  row.backend = "vulkan";
  row.device = "a \"device\", quoted";
  row.config = "tiled BM=128";
  row.origin = "winner";
  row.status = "ok";
  row.us = 12.5;
  row.roofline = 0.5;
  row.cache = "cold";
  row.samples = 5;
  row.driver = "two\nlines";
  row.date = "2026-11-20T12:00:00Z";
  row.blocks_us = {{12.5, 12.25}, {13, 12.375, 1e6}};
  row.control_us = {3.5, 3.25};
  row.cpu_us = {{24, 23.5}, {25, 24.5, 24}};
  row.cpu_control_us = {6.5, 6.25};
  row.processes = 2;
  return row;
}

TEST(ReportCsv, RowsComeBackAsTheyWere) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "deep" / "a.csv";
  ASSERT_TRUE(append_csv(file, {example()}));
  ASSERT_TRUE(append_csv(file, {CsvRow{}}));
  const auto rows = read_csv(file);
  ASSERT_TRUE(rows) << rows.failure().message;
  ASSERT_EQ(rows->size(), 2U);
  const CsvRow& row = rows->front();
  EXPECT_EQ(row.attributes, "layout=nt epilogue=bias,silu");
  EXPECT_EQ(row.device, "a \"device\", quoted");
  EXPECT_EQ(row.driver, "two lines");
  EXPECT_EQ(row.us, 12.5);
  EXPECT_EQ(row.samples, 5U);
  EXPECT_EQ(row.blocks_us, example().blocks_us);
  EXPECT_EQ(row.control_us, example().control_us);
  EXPECT_EQ(row.cpu_us, example().cpu_us);
  EXPECT_EQ(row.cpu_control_us, example().cpu_control_us);
  EXPECT_EQ(row.processes, 2U);
  EXPECT_EQ(csv_line(row), csv_line(rows->front()));
  EXPECT_TRUE(rows->back().blocks_us.empty());
}

TEST(ReportCsv, DamageIsToldWithItsLine) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "a.csv";
  const std::string good = csv_header() + csv_line(example());
  const auto failure = [&](const std::string& text) {
    std::ofstream(file, std::ios::trunc) << text;
    const auto rows = read_csv(file);
    return rows ? "" : rows.failure().message;
  };
  EXPECT_EQ(failure(good), "");
  EXPECT_NE(failure(good + "gemm,f16\n").find("line 3: has 2 fields"), std::string::npos);
  EXPECT_NE(failure(good.substr(0, good.size() - 1) + "x\n").find("line 2: processes: "),
            std::string::npos);
  EXPECT_NE(failure(csv_header() + "\"open\n").find("line 2: a quote"), std::string::npos);
  EXPECT_NE(failure("op,us\n").find("other columns"), std::string::npos);
  EXPECT_NE(read_csv(folder.path() / "none.csv").failure().message.find("No such file"),
            std::string::npos);
}

// Those that lack the number of processes, and those without processor times.
TEST(ReportCsv, FilesOfOlderVersionsAreRead) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "a.csv";
  const auto without_last = [](std::string text, int columns) {
    for (int i = 0; i < columns; ++i) text.resize(text.rfind(','));
    return text + "\n";
  };
  CsvRow row = example();
  row.processes = 0;
  for (const int missing : {1, 3}) {
    if (missing == 3) {
      row.cpu_us.clear();
      row.cpu_control_us.clear();
    }
    std::ofstream(file, std::ios::trunc)
        << without_last(csv_header(), missing) << without_last(csv_line(row), missing);
    const auto rows = read_csv(file);
    ASSERT_TRUE(rows) << rows.failure().message;
    EXPECT_EQ(csv_line(rows->front()), csv_line(row));
  }
}

}  // namespace
}  // namespace greta::test::report_csv_test
