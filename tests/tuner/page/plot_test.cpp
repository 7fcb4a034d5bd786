// Protects: plots as text in a terminal.

#include "tuner/report/plot.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/layers.hpp"
#include "tuner/report/format.hpp"

namespace greta::test::plot_test {
namespace {

TEST(Bar, IsFilledInEighths) {
  EXPECT_EQ(bar_text(0, 3), "░░░");
  EXPECT_EQ(bar_text(1, 3), "███");
  EXPECT_EQ(bar_text(0.5, 3), "█▌░");
  EXPECT_EQ(bar_text(1.0 / 24, 3), "▏░░");
  EXPECT_EQ(bar_text(7, 2), "██");
  EXPECT_EQ(bar_text(std::nan(""), 0), "");
}

TEST(Plot, DrawsTrialsAndTheBestSoFar) {
  const std::string text = plot_text({80, 40, std::nan(""), 20, 60, 10}, 24);
  std::vector<std::string> rows;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = text.find('\n', from);
    rows.push_back(text.substr(from, end - from));
    EXPECT_EQ(text_columns(rows.back()), 24U);
    from = end + 1;
  }
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_NE(rows.front().find("80.0 µs"), std::string::npos) << text;
  EXPECT_NE(rows.back().find("10.0 µs"), std::string::npos) << text;
  // The first trial is at the top on the left, the best at the bottom on the right.
  EXPECT_EQ(rows.front().substr(rows.front().find("µs") + 4, 3), "⠉") << text;
  EXPECT_TRUE(rows.back().ends_with("⢀")) << text;
}

TEST(Plot, OfTooFewTrialsIsEmpty) {
  EXPECT_EQ(plot_text({10, 20}, 60), "");
  EXPECT_EQ(plot_text({10, 20, std::nan(""), std::nan("")}, 60), "");
  EXPECT_EQ(plot_text({10, 20, 30}, 12), "");
}

TEST(Plot, OfEqualTimesIsALineAtTheBottom) {
  const std::string text = plot_text({5, 5, 5, 5}, 24);
  EXPECT_TRUE(text.ends_with("⣀⣀\n")) << text;
}

}  // namespace
}  // namespace greta::test::plot_test
