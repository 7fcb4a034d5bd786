// Protects: reports fit a terminal, use correct plurals, and state all that is known about a
// winner.

#include "tuner/report/report.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "tests/layers.hpp"
#include "tuner/report/format.hpp"

namespace greta::test::report_test {
namespace {

TEST(FormatRate, CountsBytesWhereMemoryLimits) {
  EXPECT_EQ(format_rate(Work{2e9, 1e6}, 1e3), "2.00 TFLOPS");
  EXPECT_EQ(format_rate(Work{3e9, 1e9}, 1e3), "1000 GB/s");
  EXPECT_EQ(format_rate(Work{0, 4e6}, 1), "4000 GB/s");
}

TEST(FormatRow, FitsAHundredColumnsAndKeepsEveryWord) {
  std::string text;
  for (int i = 0; i < 40; ++i) text += "µ" + std::to_string(i) + (i % 3 == 0 ? "  " : " ");
  text += std::string(150, 'x');  // a path can't be wrapped
  const std::string rows = format_row("label", text);
  std::istringstream words(text), found(rows);
  std::string word, line;
  found >> word;
  EXPECT_EQ(word, "label");
  for (std::string expected; words >> expected;) {
    ASSERT_TRUE(found >> word);
    EXPECT_EQ(word, expected);
  }
  std::istringstream lines(rows);
  int count = 0;
  for (; std::getline(lines, line); ++count) {
    EXPECT_NE(line.back(), ' ');
    const auto columns = std::count_if(line.begin(), line.end(), [](char c) {
      return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
    });
    EXPECT_TRUE(columns <= 100 || line.find("xxx") != std::string::npos) << line;
    EXPECT_EQ(line.find_first_not_of(' '), count == 0 ? 2U : 15U);
  }
  EXPECT_GE(count, 3);
}

TEST(FormatRow, ShortAndEmptyTextsAreOneLine) {
  EXPECT_EQ(format_row("time", "5 s"), "  time         5 s\n");
  EXPECT_EQ(format_row("none", "").find('\n'), format_row("none", "").size() - 1);
}

TEST(FormatCount, HasPlurals) {
  EXPECT_EQ(format_count(0, "trial"), "0 trials");
  EXPECT_EQ(format_count(1, "trial"), "1 trial");
  EXPECT_EQ(format_count(2, "trial"), "2 trials");
}

TEST(KernelsText, GivesWhatIsKnownAndNothingElse) {
  KernelStatistics some;
  some.registers = 128;
  some.scratch_bytes = 16;
  some.matrix_instructions = 1;
  const auto text = kernels_text({{"gemm/tiled", some}, {"gemm/reduce", {}}});
  EXPECT_EQ(text,
            "gemm/tiled: 128 registers, 16 B scratch memory per thread, 1 matrix instruction");
  EXPECT_EQ(kernels_text({{"gemm/tiled", {}}}), "");
}

TEST(ComparisonRow, SaysHowSureItIs) {
  Comparison comparison{1, 2, 1.25, 1.2, 1.3, 0.95, {1, 2, 3}, {1, 2, 3}};
  const auto row = comparison_row("hip:0", "vulkan:0", comparison, 2);
  EXPECT_EQ(row.find("  faster       hip:0 than vulkan:0: 1.250×  (95 % interval 1.200 to 1.300, "),
            0U)
      << row;
  EXPECT_NE(row.find("3 alternating"), std::string::npos) << row;
  comparison.low = 0.99;
  comparison.faster_us.clear();
  const auto text = comparison_row("hip:0", "vulkan:0", comparison, 2);
  EXPECT_NE(text.find("inconclusive hip:0 and vulkan:0"), std::string::npos) << text;
  EXPECT_NE(text.find("from the sessions' own"), std::string::npos) << text;
}

}  // namespace
}  // namespace greta::test::report_test
