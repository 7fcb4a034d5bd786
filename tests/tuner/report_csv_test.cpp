// Protects: CSV files are read back as written, and errors name their line.

#include <gtest/gtest.h>

#include <fstream>

#include "tests/layers.hpp"
#include "tests/temporary_folder.hpp"
#include "tuner/report/csv.hpp"

namespace greta::test::report_csv_test {
namespace {

MeasuredResult example() {
  MeasuredResult result;
  result.subject = {.problem = {.op = "gemm",
                                .dtype = DType::f16,
                                .out_dtype = DType::f32,
                                .attributes = {{"layout", "nt"}, {"epilogue", "bias,silu"}},
                                .dims = {{"m", 1}, {"n", 2}, {"k", 3}}},
                    .backend = "vulkan",
                    .device = "a \"device\", quoted",
                    .config = Config{"tiled", {{"BM", 128}}},
                    .origin = ResultOrigin::winner,
                    .cache = CacheState::cold,
                    .driver = "two\nlines"};
  result.us.median = 12.5;
  result.work = {.flops = 1e9, .bytes = 3e6};
  result.roofline = 0.5;
  result.count = 5;
  result.date = "2026-11-20T12:00:00Z";
  result.samples = {.blocks_us = {{12.5, 12.25}, {13, 12.375, 1e6}},
                    .control_us = {3.5, 3.25},
                    .cpu_us = {{24, 23.5}, {25, 24.5, 24}},
                    .cpu_control_us = {6.5, 6.25}};
  result.processes = 2;
  result.subject.greta_revision = "6544f00c7990-dirty";
  result.preset = "standard, of \"mine\"";
  result.counters = Counters{.source = "CUPTI 13.0, GH100",
                             .passes = 10,
                             .figures = {{"l2_bytes", 1.5e6}, {"matrix_share", 0.25}}};
  result.limiter = "limited by L2 bandwidth: 81 % of the peak";
  return result;
}

MeasuredResult failed_call() {
  MeasuredResult result;
  result.subject.problem.op = "dispatch";
  result.subject.typed = false;
  result.failure = Failure{Status::timeout, "timeout", {}};
  return result;
}

TEST(ReportCsv, ResultsComeBackAsTheyWere) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "deep" / "a.csv";
  ASSERT_TRUE(append_csv(file, {example()}));
  ASSERT_TRUE(append_csv(file, {failed_call()}));
  const auto results = read_csv(file);
  ASSERT_TRUE(results) << results.failure().message;
  ASSERT_EQ(results->size(), 2U);
  const MeasuredResult& result = results->front();
  Subject subject = example().subject;
  subject.driver = "two lines";  // rows are single lines
  EXPECT_EQ(result.subject, subject);
  EXPECT_FALSE(result.failure);
  EXPECT_EQ(result.us.median, 12.5);
  EXPECT_NEAR(result.work.flops, 1e9, 1e4);
  EXPECT_NEAR(result.work.bytes, 3e6, 30);
  EXPECT_EQ(result.count, 5U);
  EXPECT_EQ(result.samples.blocks_us, example().samples.blocks_us);
  EXPECT_EQ(result.samples.control_us, example().samples.control_us);
  EXPECT_EQ(result.samples.cpu_us, example().samples.cpu_us);
  EXPECT_EQ(result.samples.cpu_control_us, example().samples.cpu_control_us);
  EXPECT_EQ(result.processes, 2U);
  EXPECT_EQ(result.subject.greta_revision, "6544f00c7990-dirty");
  EXPECT_EQ(result.preset, "standard, of \"mine\"");
  EXPECT_EQ(result.counters, example().counters);
  EXPECT_EQ(result.limiter, example().limiter);
  EXPECT_FALSE(results->back().counters);
  EXPECT_EQ(csv_line(result), csv_line(example()));
  EXPECT_EQ(results->back().subject, failed_call().subject);
  EXPECT_EQ(results->back().failure->status, Status::timeout);
  EXPECT_TRUE(results->back().samples.blocks_us.empty());
}

// Operations unknown to this build and earlier names of attributes can be read.
TEST(ReportCsv, ProblemsOfOtherVersionsAreRead) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "a.csv";
  MeasuredResult earlier = example(), unknown = example();
  earlier.subject.problem = {.op = "attention",
                             .attributes = {{"layout", "packed"}},
                             .dims = {{"batch", 1}, {"causal", 1}, {"q_len", 8}}};
  unknown.subject.problem = {
      .op = "convolution", .attributes = {{"model", "a file.json"}}, .dims = {{"causal", 1}}};
  ASSERT_TRUE(append_csv(file, {earlier, unknown}));
  const auto results = read_csv(file);
  ASSERT_TRUE(results) << results.failure().message;
  earlier.subject.problem.attributes = {{"mask", "causal"}, {"layout", "packed"}};
  earlier.subject.problem.dims = {{"batch", 1}, {"q_len", 8}};
  EXPECT_EQ(results->front().subject.problem, earlier.subject.problem);
  EXPECT_EQ(results->back().subject.problem, unknown.subject.problem);
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
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  EXPECT_EQ(failure(good), "");
  EXPECT_NE(failure(good + "gemm,f16\n").find("line 3: has 2 fields"), std::string::npos);
  EXPECT_NE(failure(with(",2,", ",2x,")).find("line 2: processes: "), std::string::npos);
  EXPECT_NE(failure(csv_header() + "\"open\n").find("line 2: a quote"), std::string::npos);
  EXPECT_NE(failure(with(",winner,", ",guessed,")).find("line 2: origin: guessed"),
            std::string::npos);
  EXPECT_NE(failure(with(",ok,", ",good,")).find("line 2: status: "), std::string::npos);
  EXPECT_NE(failure(with(",f16,", ",f17,")).find("line 2: dtype: f17"), std::string::npos);
  EXPECT_NE(failure(with(",m=1 ", ",m=one ")).find("line 2: problem: one"), std::string::npos);
  for (const std::string bad : {"nan", "inf", "-2"}) {
    EXPECT_NE(failure(with(",ok,12.5,", ",ok," + bad + ",")).find("is not a time"),
              std::string::npos)
        << bad;
  }
  EXPECT_NE(failure(with("12.5 12.25", "12.5 -1")).find("samples_us: -1 is not a time"),
            std::string::npos);
  EXPECT_NE(failure("op,us\n").find("other columns"), std::string::npos);
  EXPECT_NE(read_csv(folder.path() / "none.csv").failure().message.find("No such file"),
            std::string::npos);
}

// Files without counters, the preset, the revision, the number of processes, and CPU times.
TEST(ReportCsv, FilesOfOlderVersionsAreRead) {
  const test::TemporaryFolder folder;
  const auto file = folder.path() / "a.csv";
  const auto without_last = [](std::string text, int columns) {
    for (int i = 0; i < columns; ++i) text.resize(text.rfind(','));
    return text + "\n";
  };
  MeasuredResult result = example();
  result.preset.clear();
  result.counters.reset();
  result.limiter.clear();
  for (const int missing : {1, 2, 3, 4, 5, 7}) {
    if (missing > 3) result.subject.greta_revision.clear();
    if (missing > 4) result.processes = 0;
    if (missing == 7) {
      result.samples.cpu_us.clear();
      result.samples.cpu_control_us.clear();
    }
    std::ofstream(file, std::ios::trunc)
        << without_last(csv_header(), missing) << without_last(csv_line(result), missing);
    const auto rows = read_csv(file);
    ASSERT_TRUE(rows) << rows.failure().message;
    EXPECT_EQ(csv_line(rows->front()), csv_line(result));
  }
}

}  // namespace
}  // namespace greta::test::report_csv_test
