// Protects: softmax of extreme values: infinities, NaN, no visible columns, f16's limit, denormals;
// and the tightness of its reference.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::softmax_test {
namespace {

using test::Attributes;
using test::row_problem;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// Returns the expected values of one row of a problem with the given X.
std::vector<double> expected_row(const std::vector<double>& x, const Attributes& attributes = {},
                                 std::int64_t row = 0) {
  const Operation& entry = built_in("softmax");
  const auto cols = static_cast<std::int64_t>(x.size());
  const Problem problem = row_problem(entry, row + 1, cols, {DType::f32, DType::f32}, attributes);
  const auto inputs = test::inputs_of(
      entry, problem,
      {{"X", [&x](std::int64_t, std::int64_t col) { return x[static_cast<std::size_t>(col)]; }}});
  const auto all = entry.reference(problem, inputs, 1)->expected().value().front();
  std::vector<double> values;
  for (std::int64_t col = 0; col < cols; ++col) {
    values.push_back(all[static_cast<std::size_t>(row * cols + col)].value);
  }
  return values;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-15) << i;
}

TEST(SoftmaxReference, AgreesWithValuesByHand) {
  const float ln2 = std::log(2.0F), ln5 = std::log(5.0F);
  const double a = std::exp(double{ln2}), b = std::exp(double{ln5});
  expect_near(expected_row({0, ln2, ln5}), {1 / (1 + a + b), a / (1 + a + b), b / (1 + a + b)});
  expect_near(expected_row({3}), {1});
  expect_near(expected_row({1000, 1000}), {0.5, 0.5});
  expect_near(expected_row({0, 2}, {{"scale", "-0.5"}}),
              {1 / (1 + std::exp(-1)), 1 / (1 + std::exp(1))});
}

TEST(SoftmaxReference, DefinesRowsWithoutFiniteSums) {
  expect_near(expected_row({-infinity, -infinity}), {0, 0});
  expect_near(expected_row({infinity, 5, infinity, -infinity}), {0.5, 0, 0.5, 0});
  expect_near(expected_row({-infinity, 7}), {0, 1});
  for (const double value : expected_row({1, nan, infinity})) EXPECT_TRUE(std::isnan(value));
}

TEST(SoftmaxReference, CausalRowsSeeUpToTheirColumn) {
  const Attributes causal{{"mask", "causal"}};
  expect_near(expected_row({1, 1, 1}, causal, 0), {1, 0, 0});
  expect_near(expected_row({1, 1, 1}, causal, 1), {0.5, 0.5, 0});
  expect_near(expected_row({1, 1, 1}, causal, 3), {1, 0, 0});  // the next square
  expect_near(expected_row({1, nan, 1}, causal, 0), {1, 0, 0});
}

TEST(SoftmaxReference, BoundsAreWithinWhatIsAskedFor) {
  const Operation& entry = built_in("softmax");
  for (const std::int64_t cols : {2, 64, 4096}) {
    const Problem problem = row_problem(entry, 2, cols);
    const auto inputs = entry.inputs(problem, 1);
    const auto expected = entry.reference(problem, inputs, 1)->expected().value();
    for (const Expected& e : expected.front()) {
      EXPECT_LT(e.bound, 1e-6 + 1e-6 * e.value) << cols;
    }
  }
}

/// A row's softmax in FP64, modified by `broken` and rounded to the output type.
struct Broken {
  explicit Broken(DType out) : problem(row_problem(entry, 3, 4096, {out, out})) {}

  Verdict judge(const std::function<void(std::vector<double>& exps, double& sum)>& spoil) const {
    HostTensor y{entry.tensors(problem).back(), {}};
    y.data.resize(y.spec.bytes());
    for (std::size_t row = 0; row < 3; ++row) {
      std::vector<double> exps;
      double sum = 0;
      for (std::size_t col = 0; col < 4096; ++col) {
        exps.push_back(std::exp(inputs[0].at(row * 4096 + col)));
        sum += exps.back();
      }
      spoil(exps, sum);
      for (std::size_t col = 0; col < 4096; ++col) {
        store_element(y.spec.dtype, y.data.data(), row * 4096 + col, exps[col] / sum);
      }
    }
    return reference->check({y});
  }

  const Operation& entry = built_in("softmax");
  Problem problem;
  std::vector<HostTensor> inputs = entry.inputs(problem, 8);
  std::unique_ptr<Reference> reference = entry.reference(problem, inputs, 1);
};

TEST(SoftmaxReference, CatchesWhatABrokenKernelWouldGive) {
  for (const DType type : {DType::f32, DType::f16}) {
    const Broken broken(type);
    EXPECT_TRUE(broken.judge([](auto&, double&) {}).passed);
    EXPECT_FALSE(broken.judge([](auto& exps, double& sum) { sum -= exps[17]; }).passed);
    EXPECT_FALSE(broken.judge([](auto& exps, double&) { exps[4095] = nan; }).passed);
    EXPECT_FALSE(broken.judge([](auto& exps, double&) { exps[5] = infinity; }).passed);
    EXPECT_FALSE(broken.judge([](auto& exps, double&) { std::swap(exps[1], exps[2]); }).passed);
    const auto in_f16 = [](auto& exps, double& sum) {
      std::byte raw[2];
      store_element(DType::f16, raw, 0, 0);
      for (const double e : exps) {
        store_element(DType::f16, raw, 0, load_element(DType::f16, raw, 0) + e);
      }
      sum = load_element(DType::f16, raw, 0);
    };
    EXPECT_FALSE(broken.judge(in_f16).passed);
  }
}

class Softmax : public ::testing::TestWithParam<std::string> {
 protected:
  void expect_right(const Problem& problem, const test::Elements& x,
                    const test::Elements& mask = nullptr) {
    std::vector<std::pair<std::string, test::Elements>> elements{{"X", x}};
    if (mask) elements.emplace_back("mask", mask);
    test::expect_right_for(entry_, problem, test::inputs_of(entry_, problem, elements), device_);
  }

  const Operation& entry_ = built_in("softmax");
  Device& device_ = test::device(GetParam());
};

TEST_P(Softmax, InfinitiesNanAndNothingAtAll) {
  const auto element = [](std::int64_t row, std::int64_t col) {
    const double usual = static_cast<double>((row * 7 + col * 13) % 11) / 4;
    switch (row) {
      case 0:
        return -infinity;
      case 1:
        return col == 77 || col == 201 ? infinity : usual;
      case 2:
        return col == 150 ? nan : usual;
      case 3:
        return col == 3 ? infinity : col == 99 ? nan : -infinity;
      case 4:
        return col == 200 ? usual : -infinity;
      case 5:
        return infinity;
      case 6:
        return nan;
      default:
        return usual;
    }
  };
  expect_right(row_problem(entry_, 8, 208, {DType::f16, DType::f16}), element);
  expect_right(row_problem(entry_, 8, 208, {DType::f32, DType::f32}, {{"place", "in"}}), element);
}

TEST_P(Softmax, ExtremesOfTheTypes) {
  const auto ends = [](double most) {
    return [most](std::int64_t row, std::int64_t col) {
      if (row == 0) return col % 2 == 0 ? most : -most;
      if (row == 1) return -most;
      if (row == 2) return most - most * 0x1p-11 * static_cast<double>(col % 3);
      return static_cast<double>(col) * 0x1p-24;  // denormals of f16
    };
  };
  expect_right(row_problem(entry_, 4, 96, {DType::f16, DType::f32}), ends(65504));
  expect_right(row_problem(entry_, 4, 96, {DType::f32, DType::f32}), ends(3.4e38));
  expect_right(row_problem(entry_, 4, 96, {DType::bf16, DType::bf16}), ends(3.38e38));
}

TEST_P(Softmax, MasksHideWhatTheyShould) {
  const auto usual = [](std::int64_t row, std::int64_t col) {
    return static_cast<double>((row * 5 + col * 3) % 17) / 8 - 1;
  };
  const auto mask = [](std::int64_t row, std::int64_t col) {
    if (row == 0) return -infinity;
    if (row == 1) return -65504.0;
    return (row + col) % 3 == 0 ? -infinity : 0.25;
  };
  const DTypes f16{DType::f16, DType::f16};
  expect_right(row_problem(entry_, 5, 72, f16, {{"scale", "0.125"}, {"mask", "additive"}}), usual,
               mask);
  expect_right(row_problem(entry_, 50, 24, f16, {{"mask", "causal"}}), usual);
}

INSTANTIATE_TEST_SUITE_P(Devices, Softmax, ::testing::ValuesIn(test::unlike_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

TEST(SoftmaxProblem, InPlaceNeedsOneType) {
  const auto checked = built_in("softmax").check(
      row_problem(built_in("softmax"), 4, 4, {DType::f16, DType::f32}, {{"place", "in"}}));
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.failure().message, "place in: needs an output of the input's type");
}

// With a causal mask, half of a square must be read.
TEST(SoftmaxProblem, CountsBytes) {
  const auto bytes = [](Attributes attributes) {
    return built_in("softmax")
        .work(row_problem(built_in("softmax"), 10, 4, {DType::f16, DType::f16}, attributes))
        .bytes;
  };
  EXPECT_EQ(bytes({}), 2 * 40 * 2);
  EXPECT_EQ(bytes({{"place", "in"}}), 2 * 40 * 2);
  EXPECT_EQ(bytes({{"mask", "additive"}}), 3 * 40 * 2);
  EXPECT_EQ(bytes({{"mask", "causal"}}), (40 + 10 + 10 + 3) * 2);
}

}  // namespace
}  // namespace greta::test::softmax_test
