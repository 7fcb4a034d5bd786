// Protects: 200 random problems, or two for five cases where there are more than 500, cover 49 of
// 50 cases of an operation's kernels on a device, 2000 more cover the rest, and the coverage is
// listed. Nothing is compiled or run.

#include "kernels/sampling/coverage.hpp"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::coverage_test {
namespace {

void expect_covered(const Operation& operation, const DeviceInfo& info, std::string_view variant) {
  Coverage coverage(operation, info, variant);
  const auto next = candidate_source(operation, info, variant, 1);
  const auto add = [&](std::size_t count) {
    while (count-- > 0) {
      if (const auto choice = next()) coverage.add(*choice);
    }
  };
  add(std::max<std::size_t>(200, coverage.all() * 2 / 5));  // gemm has up to 1000 cases
  EXPECT_GT(coverage.all(), 20U);
  EXPECT_LE(coverage.missing().size(), (coverage.all() + 49) / 50)
      << fmt::format("{}", fmt::join(coverage.missing(), ", "));
  // All listed cases can be covered: none is forbidden by constraints.
  for (int more = 0; more < 100 && !coverage.missing().empty(); ++more) add(20);
  for (const Feature& feature : coverage.missing()) ADD_FAILURE() << "not met: " << feature;
  for (const Feature& feature : coverage.unlisted()) ADD_FAILURE() << "not listed: " << feature;
}

TEST(RemainderClass, TellsBlocksApartByWhatLoopsLeaveOver) {
  std::set<int> classes;
  for (const int extent : {1, 2, 3, 4, 5, 7, 32, 96, 160, 224})
    classes.insert(remainder_class(extent));
  EXPECT_EQ(classes.size(), 10U);
  EXPECT_EQ(remainder_class(224), remainder_class(32 * 11));
  EXPECT_EQ(remainder_class(160), remainder_class(32 * 9));
}

class CoverageOf : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {};

TEST_P(CoverageOf, TwoHundredProblemsMeetNearlyEverything) {
  expect_covered(built_in(std::get<0>(GetParam())), test::device(std::get<1>(GetParam())).info(),
                 "");
}

/// The variant of gemm that hip-host:0 has and hip-host:1 does not.
TEST(CoverageOfVariant, OfProductsOfTf32IsNearlyMetByTwoHundredProblems) {
  expect_covered(built_in("gemm"), test::device("hip-host:0").info(), "tf32x3");
}

/// Returns lavapipe and two emulated GPUs with waves of 64 and 32. The spaces of other devices are
/// similar.
std::vector<std::string> some_devices() {
  std::vector<std::string> devices;
  for (const std::string& device : test::usable_devices()) {
    if (device < "hip-host:2" || device > "hip-host:4") devices.push_back(device);
  }
  return devices;
}

std::vector<std::string> operations() {
  std::vector<std::string> names;
  for (const Operation& kernel : catalog()) names.push_back(kernel.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Catalog, CoverageOf,
                         ::testing::Combine(::testing::ValuesIn(operations()),
                                            ::testing::ValuesIn(some_devices())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  test::device_name(std::get<1>(instance.param));
                         });

}  // namespace
}  // namespace greta::test::coverage_test
