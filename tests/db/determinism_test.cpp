// Protects: what a verdict states of repeated runs is read back as it was written.

#include "db/determinism.hpp"

#include <gtest/gtest.h>

#include "tests/layers.hpp"

namespace greta::test::determinism_test {

namespace {

void expect_read_back(const db::Determinism& made, const std::string& text,
                      const std::string& short_text) {
  EXPECT_EQ(to_text(made), text);
  Verdict verdict;
  verdict.method = "full; 3 small problems with the same kernels; " + text;
  const auto read = db::determinism_of(verdict);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->runs, made.runs);
  EXPECT_EQ(read->busy, made.busy);
  EXPECT_EQ(read->differing, made.differing);
  EXPECT_EQ(read->planned, made.planned);
  EXPECT_EQ(db::short_text(read), short_text);
}

TEST(Determinism, IsReadBack) {
  expect_read_back({20, 10, 0, 20}, "equal bits in 20 runs, 10 of them on a busy device",
                   "equal bits, 20 runs");
  expect_read_back(
      {20, 10, 1, 20},
      "other bits of 1 element, as sums have no fixed order, in 20 runs, 10 of them on "
      "a busy device",
      "1 element differs, 20 runs");
  expect_read_back({3, 1, 0, 20},
                   "equal bits in 3 runs, 1 of them on a busy device (20 would take too long)",
                   "equal bits, 3 runs");
}

TEST(Determinism, IsUnknownOfVerdictsWithoutRepeatedRuns) {
  Verdict verdict;
  verdict.method = "full; 3 small problems with the same kernels";
  EXPECT_FALSE(db::determinism_of(verdict));
  EXPECT_EQ(db::short_text(std::nullopt), "");
}

}  // namespace

}  // namespace greta::test::determinism_test
