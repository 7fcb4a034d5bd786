// Protects: screens skip comparisons of elements. They must skip none that a comparison would
// report, and most of the others.

#include "kernels/reference/screen.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

#include "kernels/reference/findings.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/layers.hpp"

namespace greta::test::screen_test {
namespace {

using test::filled;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t rows = 5, cols = 203;

/// Returns a number uniform in 0 … 1.
double fraction(std::mt19937& random) {
  return static_cast<double>(random()) * 0x1p-32;
}

/// Returns values of all magnitudes with bounds of at least the rounding to the type, including
/// zeros that must be exact.
std::vector<Expected> random_elements(DType type, std::mt19937& random) {
  std::vector<Expected> list;
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const double size = std::ldexp(1 + fraction(random), static_cast<int>(random() % 24) - 20);
    const double value = type == DType::i32 ? static_cast<double>(random() % 1000) : size;
    list.push_back(random() % 16 == 0 ? Expected{0, 0}
                                      : rounded(type, value, fraction(random) * 0x1p-10 * value));
  }
  return list;
}

ExpectedOutput output_of(DType type, const std::vector<Expected>& elements) {
  return {{"C", Role::output, type, rows, cols}, [elements](std::int64_t row, std::int64_t col) {
            return elements[static_cast<std::size_t>(row * cols + col)];
          }};
}

/// Returns the expected values, each with an error of a part of its bound.
std::vector<double> results_of(const std::vector<Expected>& elements, double most,
                               std::mt19937& random) {
  std::vector<double> results;
  for (const Expected& e : elements) {
    results.push_back(e.value + most * (2 * fraction(random) - 1) * e.bound);
  }
  return results;
}

/// Returns the verdict of comparing every element.
Verdict compared(const std::vector<Expected>& elements, const HostTensor& output) {
  Findings all(rows, cols);
  for (std::int64_t i = 0; i < rows * cols; ++i) {
    const Expected& e = elements[static_cast<std::size_t>(i)];
    all.compare(i / cols, i % cols, output.at(static_cast<std::size_t>(i)), e.value, e.bound);
  }
  return all.verdict("full");
}

class ScreenTest : public ::testing::TestWithParam<DType> {};

TEST_P(ScreenTest, TheVerdictIsThatOfComparingEveryElement) {
  std::mt19937 random(7);
  const std::vector<double> spoilt{nan, infinity, -infinity, 1e4, 0, -1};
  for (int round = 0; round < 200; ++round) {
    auto elements = random_elements(GetParam(), random);
    if (round % 5 == 4) elements[random() % elements.size()] = {infinity, 0};
    if (round % 5 == 3) elements[random() % elements.size()] = {nan, 0};
    if (round % 5 == 2) elements[random() % elements.size()] = {1, infinity};
    const double most = std::vector{0.0, 0.1, 0.6, 0.999, 1.3}[random() % 5];
    auto results = results_of(elements, most, random);
    for (auto wrong = random() % 3; wrong > 0; --wrong) {
      const double value = spoilt[random() % spoilt.size()];
      const bool fits = GetParam() != DType::i32 || std::isfinite(value);
      if (fits) results[random() % results.size()] = value;
    }
    for (double& result : results) {
      if (GetParam() == DType::i32 && !std::isfinite(result)) result = 0;
    }
    const ExpectedOutput expected = output_of(GetParam(), elements);
    const HostTensor output = filled(expected.spec, results);
    const Verdict want = compared(elements, output);
    const Verdict got = elements_reference({expected})->check({output});
    EXPECT_EQ(got.passed, want.passed) << round;
    EXPECT_EQ(got.error, want.error) << round;
    EXPECT_EQ(got.bound, want.bound) << round;
    EXPECT_EQ(got.detail, want.detail.empty() ? "" : "C: " + want.detail) << round;
  }
}

TEST_P(ScreenTest, PassesOverWhatIsRightAndStopsAtWhatIsNot) {
  std::mt19937 random(3);
  const auto elements = random_elements(GetParam(), random);
  const ExpectedOutput expected = output_of(GetParam(), elements);
  const auto screen = make_screen(expected);
  ASSERT_TRUE(screen);
  std::vector<double> results;
  for (const Expected& e : elements) results.push_back(e.value);  // rounded to the type later
  EXPECT_EQ(screen->suspect(filled(expected.spec, results), 0, rows * cols, 1), rows * cols);
  EXPECT_EQ(screen->suspect(filled(expected.spec, results), 3, 9, -1), 3) << "none is known yet";
  for (const std::int64_t at : {0, 1, 63, 64, 100, 1014}) {
    auto wrong = results;
    double& element = wrong[static_cast<std::size_t>(at)];
    element += 1 + 4 * elements[static_cast<std::size_t>(at)].bound;
    EXPECT_EQ(screen->suspect(filled(expected.spec, wrong), 0, rows * cols, 1), at);
    EXPECT_EQ(screen->suspect(filled(expected.spec, wrong), at + 1, rows * cols, 1), rows * cols);
  }
}

// An element equal to the stored value still has that value's rounding error, which is the largest
// error if all others are exact.
TEST(Screen, PassesOverNoErrorThatTheKeptValueHides) {
  std::vector<Expected> elements(static_cast<std::size_t>(rows * cols), Expected{1, 0x1p-11});
  elements[100].value += 0x1p-40;
  const ExpectedOutput expected = output_of(DType::f16, elements);
  const HostTensor ones = filled(expected.spec, std::vector<double>(elements.size(), 1));
  EXPECT_EQ(elements_reference({expected})->check({ones}).error, 0x1p-40);
}

INSTANTIATE_TEST_SUITE_P(Types, ScreenTest,
                         ::testing::Values(DType::f32, DType::f16, DType::bf16, DType::i32),
                         [](const auto& type) { return std::string(to_string(type.param)); });

}  // namespace
}  // namespace greta::test::screen_test
