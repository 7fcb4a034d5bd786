// Protects: argmax on every device: ties, NaN and infinities, short and long rows, and rows shared
// by workgroups.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::argmax_test {
namespace {

const double infinity = std::numeric_limits<double>::infinity();
const double nan = std::nan("");

const Operation& argmax() {
  return built_in("argmax");
}

Problem problem_of(DType in, std::int64_t rows, std::int64_t cols) {
  return {"argmax", in, DType::i32, {}, {{"rows", rows}, {"cols", cols}}};
}

/// Rows with special values, and the expected column of each.
const std::vector<std::pair<std::vector<double>, double>> rows{
    {{1, 3, 3, 2, 3, 0, -1, 3}, 1},
    {{-5, -4, -3, -2, -2, -9, -2, -7}, 3},
    {{nan, 1, nan, 2, nan, 2, nan, nan}, 3},
    {{nan, nan, nan, nan, nan, nan, nan, nan}, 0},
    {{nan, -infinity, nan, -infinity, nan, nan, nan, nan}, 1},
    {{-infinity, -infinity, -65504, -infinity, -infinity, -infinity, -infinity, nan}, 2},
    {{1, infinity, nan, infinity, 65504, 1, 1, 1}, 1},
    {{-1, -0.0, 0.0, -0.0, 0, -1, -1, -1}, 1},
    {{-infinity, -infinity, -infinity, -infinity, nan, -infinity, -infinity, -infinity}, 0},
    {{0, 0x1p-24, 0, -1, 0x1p-24, 0, 0, 0}, 1},
};

std::vector<double> all_values() {
  std::vector<double> values;
  for (const auto& [row, winner] : rows) values.insert(values.end(), row.begin(), row.end());
  return values;
}

std::vector<double> all_winners() {
  std::vector<double> winners;
  for (const auto& [row, winner] : rows) winners.push_back(winner);
  return winners;
}

TEST(ArgmaxReference, KnowsTheWinnersAndAcceptsNothingElse) {
  const Problem problem = problem_of(DType::f16, std::ssize(rows), 8);
  const auto specs = argmax().tensors(problem);
  const auto reference = argmax().reference(problem, {test::filled(specs[0], all_values())}, 1);
  const auto winners = all_winners();
  EXPECT_TRUE(reference->check({test::filled(specs[1], winners)}).passed);
  for (std::size_t i = 0; i < winners.size(); ++i) {
    auto wrong = winners;
    ++wrong[i];
    EXPECT_FALSE(reference->check({test::filled(specs[1], wrong)}).passed) << i;
  }
}

class Argmax : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_right(const Problem& problem, const Config& config, std::uint64_t seed) {
    test::expect_right(argmax(), problem, argmax().plan(problem, info_, config), config.text(),
                       seed, device_);
  }

  Config parse(const Problem& problem, const char* text) const {
    return argmax().space(problem, info_).parse(text).value();
  }

  Device& device_ = test::device(GetParam());
  const DeviceInfo& info_ = device_.info();
};

TEST_P(Argmax, TiesNanAndInfinities) {
  const std::int64_t count = std::ssize(rows);
  for (const DType in : {DType::f32, DType::f16}) {
    const Problem problem = problem_of(in, count, 8);
    const auto specs = argmax().tensors(problem);
    for (const char* config :
         {"row THREADS=64 VEC=1 ITEMS=1 ROWS=8", "row THREADS=64 VEC=4 ITEMS=2 ROWS=8",
          "split THREADS=64 VEC=2 ITEMS=1 SPLIT=4"}) {
      const auto plan = argmax().plan(problem, info_, parse(problem, config)).value();
      const auto run =
          test::run_plan(device_, plan, specs, {test::filled(specs[0], all_values())}, 2).value();
      EXPECT_EQ(run.overrun, "");
      for (std::size_t i = 0; i < rows.size(); ++i) {
        EXPECT_EQ(run.outputs[0].at(i), rows[i].second) << config << ", row " << i;
      }
    }
  }
}

TEST_P(Argmax, OneColumnAndOneVocabulary) {
  const Problem column = problem_of(DType::f32, 70, 1);
  expect_right(column, argmax().default_config(column, info_), 1);
  // Every bf16 value occurs many times, so equal maxima lie in many parts. The lowest column must
  // win.
  const Problem vocabulary = problem_of(DType::bf16, 1, 131072);
  expect_right(vocabulary, argmax().default_config(vocabulary, info_), 2);
  expect_right(vocabulary, parse(vocabulary, "split THREADS=64 VEC=8 ITEMS=4 SPLIT=64"), 3);
}

// One workgroup per tiny row keeps some drivers busy for 50 us with few active threads, so many
// rows would exceed a candidate's deadline.
TEST_P(Argmax, WorkgroupsShareTinyRows) {
  for (const std::int64_t count : {300001, 3}) {
    const Problem column = problem_of(DType::f32, count, 1);
    const Space space = argmax().space(column, info_);
    ASSERT_GT(space.count("row"), 0U);
    for (std::uint64_t i = 0; i < space.count(); ++i) {
      const Config config = space.at(i);
      EXPECT_GE(2 * config["ROWS"], std::min<std::int64_t>(64, count)) << config.text();
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, Argmax, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

TEST(ArgmaxDefault, SplitsFewLongRowsAndSharesWorkgroupsAmongShortOnes) {
  DeviceInfo device;
  device.language = Language::hip;
  device.kind = DeviceKind::discrete_gpu;
  device.max_workgroup_invocations = 1024;
  device.max_workgroup_size = {1024, 1024, 1024};
  device.max_grid = {0x7fffffff, 65535, 65535};
  device.compute_units = 132;
  device.f16_storage = true;
  device.memory_bytes = device.max_allocation_bytes = 1ULL << 37;
  const auto text = [&](std::int64_t count, std::int64_t cols) {
    return argmax().default_config(problem_of(DType::f16, count, cols), device).text();
  };
  EXPECT_EQ(text(1, 128256), "split THREADS=256 VEC=8 ITEMS=2 SPLIT=32");
  EXPECT_EQ(text(4096, 32000), "row THREADS=256 VEC=8 ITEMS=4 ROWS=1");
  EXPECT_EQ(text(4096, 40), "row THREADS=256 VEC=8 ITEMS=1 ROWS=32");
}

}  // namespace
}  // namespace greta::test::argmax_test
