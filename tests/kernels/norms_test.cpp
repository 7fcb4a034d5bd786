// Protects: norms of rows with extreme values or cancellation: means far from zero, equal elements,
// zeros, f16's limit, denormals, NaN; and the tightness of their references.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"
#include "tests/kernels/row_cases.hpp"

namespace greta::test::norms_test {
namespace {

using test::Attributes;
using test::Elements;
using test::row_problem;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr DTypes f32{DType::f32, DType::f32}, f16{DType::f16, DType::f16};

/// Returns a row's values as a function of its columns.
Elements row_of(std::vector<double> values) {
  return [values = std::move(values)](std::int64_t, std::int64_t col) {
    return values[static_cast<std::size_t>(col)];
  };
}

/// Returns the reference's values of each output of a row of two.
std::vector<std::vector<double>> expected(const Operation& entry, const Attributes& attributes,
                                          std::vector<std::pair<std::string, Elements>> elements) {
  const Problem problem = row_problem(entry, 1, 2, f32, attributes);
  const auto reference = entry.reference(problem, test::inputs_of(entry, problem, elements), 1);
  std::vector<std::vector<double>> outputs;
  const auto all = reference->expected().value();
  for (const auto& output : all) outputs.push_back({output[0].value, output[1].value});
  return outputs;
}

TEST(NormReferences, AgreeWithValuesByHand) {
  const Attributes epsilon{{"epsilon", "0.25"}};
  const auto rms =
      expected(built_in("rmsnorm"), epsilon, {{"X", row_of({3, 4})}, {"weight", row_of({1, -2})}});
  EXPECT_NEAR(rms[0][0], 3 / std::sqrt(12.75), 1e-15);
  EXPECT_NEAR(rms[0][1], -8 / std::sqrt(12.75), 1e-15);
  const auto added = expected(built_in("add_rmsnorm"), {{"affine", "none"}, {"epsilon", "0.25"}},
                              {{"X", row_of({1, 6})}, {"residual", row_of({2, -2})}});
  EXPECT_EQ(added[0], (std::vector<double>{3, 4}));
  EXPECT_NEAR(added[1][0], 3 / std::sqrt(12.75), 1e-15);
  const auto both = expected(built_in("layernorm_rmsnorm"), epsilon,
                             {{"X", row_of({1, 3})},
                              {"weight", row_of({1, 2})},
                              {"bias", row_of({0.5, -1})},
                              {"gain", row_of({3, 1})}});
  const double a = 0.5 - 1 / std::sqrt(1.25), b = 2 / std::sqrt(1.25) - 1;
  const double root = std::sqrt((a * a + b * b) / 2 + 0.25);
  EXPECT_NEAR(both[0][0], 3 * a / root, 1e-14);
  EXPECT_NEAR(both[0][1], b / root, 1e-14);
  const auto layer =
      expected(built_in("layernorm"), epsilon,
               {{"X", row_of({1, 3})}, {"weight", row_of({1, 2})}, {"bias", row_of({0.5, -1})}});
  EXPECT_NEAR(layer[0][0], 0.5 - 1 / std::sqrt(1.25), 1e-15);
  EXPECT_NEAR(layer[0][1], 2 / std::sqrt(1.25) - 1, 1e-15);
}

TEST(NormReferences, BoundsAreWithinWhatIsAskedFor) {
  for (const Operation* entry : {catalog().find("rmsnorm"), catalog().find("layernorm")}) {
    for (const std::int64_t cols : {1, 64, 4096}) {
      const Problem problem = row_problem(*entry, 2, cols, f32, {{"affine", "none"}});
      const auto all = entry->reference(problem, entry->inputs(problem, 1), 1)->expected().value();
      for (const Expected& e : all.front()) {
        EXPECT_LT(e.bound, 1e-5 + 1e-5 * std::abs(e.value)) << entry->name << ' ' << cols;
      }
    }
  }
}

/// Returns the value rounded to f16.
double in_f16(double value) {
  std::byte raw[2];
  store_element(DType::f16, raw, 0, value);
  return load_element(DType::f16, raw, 0);
}

/// Checks a layer norm without weights, computed in FP64, whose moments `spoil` modifies.
Verdict judge_layernorm(
    DType out, double offset, double size,
    const std::function<void(const std::vector<double>&, double& mean, double& variance)>& spoil) {
  const Operation& entry = built_in("layernorm");
  const Problem problem =
      row_problem(entry, 3, 4096, {DType::f32, out}, {{"affine", "none"}, {"epsilon", "1e-12"}});
  auto inputs = entry.inputs(problem, 8);
  const HostTensor drawn = inputs[0];
  inputs[0] = test::tensor_of(inputs[0].spec, [&](std::int64_t row, std::int64_t col) {
    return offset + size * drawn.at(static_cast<std::size_t>(row * 4096 + col));
  });
  HostTensor y{entry.tensors(problem).back(), {}};
  y.data.resize(y.spec.bytes());
  for (std::size_t row = 0; row < 3; ++row) {
    std::vector<double> x;
    for (std::size_t col = 0; col < 4096; ++col) x.push_back(inputs[0].at(row * 4096 + col));
    double mean = 0, variance = 0;
    for (const double value : x) mean += value / 4096;
    for (const double value : x) variance += (value - mean) * (value - mean) / 4096;
    spoil(x, mean, variance);
    for (std::size_t col = 0; col < 4096; ++col) {
      store_element(out, y.data.data(), row * 4096 + col,
                    (x[col] - mean) / std::sqrt(variance + 1e-12));
    }
  }
  return entry.reference(problem, inputs, 1)->check({y});
}

// Checks every term as stated in kernels/reference/norms.hpp, because the tests of bounds would not
// notice a tenth of a term.
TEST(NormReferences, LayerNormsBoundIsAsStated) {
  constexpr double u = 0x1p-24, epsilon = 0.25;
  const Problem problem =
      row_problem(built_in("layernorm"), 1, 4, f32, {{"affine", "none"}, {"epsilon", "0.25"}});
  const Operation& entry = built_in("layernorm");
  const auto inputs = test::inputs_of(entry, problem, {{"X", row_of({1, 2, 4, 9})}});
  const auto expected = entry.reference(problem, inputs, 1)->expected().value().front();
  // The mean is 4: distances are 3, 2, 0 and 5.
  constexpr double merges = 3, sum_error = 4 * u, farthest = 5, average = 2.5, variance = 9.5;
  const double mean_error = (14 + merges) * u * (average + farthest);
  const double variance_error = (sum_error + 3 * u) * variance +
                                (4 + 2 * merges) * u * farthest * average + mean_error * mean_error;
  const double root = std::sqrt(variance + epsilon);
  const double relative = 0.5 * variance_error / (variance + epsilon) + (4 + 1.5 + 2) * u;
  const std::vector<double> distances{-3, -2, 0, 5};
  for (std::size_t i = 0; i < distances.size(); ++i) {
    const double y = std::abs(distances[i]) / root;
    const double error = y * relative + (mean_error + 2 * u * farthest) / root;
    const double power = std::exp2(std::floor(std::log2(y + error)));
    EXPECT_NEAR(expected[i].bound / (error + u * power), 1, 1e-6) << i;
  }
}

TEST(NormReferences, CatchWhatABrokenLayerNormWouldGive) {
  using Row = std::vector<double>;
  for (const DType type : {DType::f32, DType::f16}) {
    EXPECT_TRUE(judge_layernorm(type, 0, 1, [](const Row&, double&, double&) {}).passed);
    // One element is missing in the mean or in the variance, or the count is one too small.
    EXPECT_FALSE(judge_layernorm(type, 0, 1, [](const Row& x, double& mean, double&) {
                   mean -= x[9] / 4096;
                 }).passed);
    EXPECT_FALSE(judge_layernorm(type, 0, 1, [](const Row& x, double& mean, double& variance) {
                   variance -= (x[9] - mean) * (x[9] - mean) / 4096;
                 }).passed);
    EXPECT_FALSE(judge_layernorm(type, 0, 1, [](const Row&, double&, double& variance) {
                   variance *= 4096.0 / 4095;
                 }).passed);
    EXPECT_FALSE(judge_layernorm(type, 0, 1, [](const Row& x, double& mean, double&) {
                   double sum = 0;
                   for (const double value : x) sum = in_f16(sum + value);
                   mean = sum / 4096;
                 }).passed);
  }
  // A variance from sums of squares in f32 fails far from zero.
  EXPECT_TRUE(judge_layernorm(DType::f32, 1000, 0.01, [](const Row&, double&, double&) {}).passed);
  EXPECT_FALSE(
      judge_layernorm(DType::f32, 1000, 0.01, [](const Row& x, double& mean, double& variance) {
        float sum = 0, squares = 0;
        for (const double value : x) {
          sum += static_cast<float>(value);
          squares += static_cast<float>(value * value);
        }
        mean = sum / 4096;
        variance = std::max(0.0F, squares / 4096 - sum / 4096 * (sum / 4096));
      }).passed);
}

TEST(NormReferences, CatchWhatABrokenRmsNormWouldGive) {
  const Operation& entry = built_in("add_rmsnorm");
  const Problem problem = row_problem(entry, 2, 4096, f16, {{"affine", "none"}});
  const auto inputs = entry.inputs(problem, 8);
  const auto reference = entry.reference(problem, inputs, 1);
  const auto judge = [&](double lost, double shift) {
    std::vector<HostTensor> outputs;
    for (const TensorSpec& spec : entry.tensors(problem)) {
      if (spec.role == Role::output)
        outputs.push_back({spec, std::vector<std::byte>(spec.bytes())});
    }
    for (std::size_t row = 0; row < 2; ++row) {
      const auto x = [&](std::size_t col) {
        return inputs[0].at(row * 4096 + col) + inputs[1].at(row * 4096 + col);
      };
      double squares = -lost * x(11) * x(11);
      for (std::size_t col = 0; col < 4096; ++col) squares += x(col) * x(col);
      for (std::size_t col = 0; col < 4096; ++col) {
        const double y = x(col) / std::sqrt(squares / 4096 + 1e-5F);
        store_element(DType::f16, outputs[0].data.data(), row * 4096 + col, x(col) + shift);
        store_element(DType::f16, outputs[1].data.data(), row * 4096 + col, y);
      }
    }
    return reference->check(outputs).passed;
  };
  EXPECT_TRUE(judge(0, 0));
  EXPECT_FALSE(judge(1, 0));
  EXPECT_FALSE(judge(0, 0.001));
}

class Norms : public ::testing::TestWithParam<std::tuple<std::string, std::string>> {
 protected:
  void expect_right(const DTypes& types, const Elements& x, std::int64_t cols = 208,
                    const Elements& residual = nullptr) {
    const Problem problem = row_problem(entry_, 4, cols, types);
    std::vector<std::pair<std::string, Elements>> elements{{"X", x}};
    if (residual) elements.emplace_back("residual", residual);
    test::expect_right_for(entry_, problem, test::inputs_of(entry_, problem, elements), device_);
  }

  static const Operation& entry(const std::string& name) {
    if (name == "layernorm") return built_in("layernorm");
    if (name == "layernorm_rmsnorm") return built_in("layernorm_rmsnorm");
    return name == "rmsnorm" ? built_in("rmsnorm") : built_in("add_rmsnorm");
  }

  const Operation& entry_ = entry(std::get<0>(GetParam()));
  Device& device_ = test::device(std::get<1>(GetParam()));
};

TEST_P(Norms, MeansFarFromZeroAndEqualElements) {
  expect_right(f32, [](std::int64_t row, std::int64_t col) {
    const double ripple = static_cast<double>((row * 7 + col * 13) % 11) * 0x1p-10;
    switch (row) {
      case 0:
        return 1000 + ripple;
      case 1:
        return 1000.0;
      case 2:
        return col == 0 ? 1000.0 : ripple;  // the element that the others are subtracted from
      default:
        return 0.0;
    }
  });
}

TEST_P(Norms, ExtremesOfF16) {
  const auto none = [](std::int64_t, std::int64_t) { return 0.0; };
  expect_right(
      f16,
      [](std::int64_t row, std::int64_t col) {
        if (row == 0) return col % 2 == 0 ? 65504.0 : -65504.0;
        if (row == 1) return 65504.0 - 32 * static_cast<double>(col % 5);
        if (row == 2) return static_cast<double>(col % 7) * 0x1p-24;  // denormals
        return col == 100 ? 65504.0 : 0.0;
      },
      208, none);
}

TEST_P(Norms, DenormalsInfinityAndNan) {
  const auto none = [](std::int64_t, std::int64_t) { return 0.0; };
  expect_right(
      f32,
      [](std::int64_t row, std::int64_t col) {
        const double usual = static_cast<double>((row + col * 3) % 5);
        if (row == 0) return usual * 0x1p-140;
        if (row == 1) return col == 45 ? nan : usual;
        if (row == 2) return col == 200 ? infinity : usual;
        return usual;
      },
      208, none);
}

INSTANTIATE_TEST_SUITE_P(Devices, Norms,
                         ::testing::Combine(::testing::Values("layernorm", "layernorm_rmsnorm",
                                                              "rmsnorm", "add_rmsnorm"),
                                            ::testing::ValuesIn(test::unlike_devices())),
                         [](const auto& instance) {
                           return std::get<0>(instance.param) + "_" +
                                  test::device_name(std::get<1>(instance.param));
                         });

TEST(NormProblems, CountBytes) {
  const auto bytes = [](const Operation& entry) {
    return entry.work(row_problem(entry, 10, 4, f16)).bytes;
  };
  EXPECT_EQ(bytes(built_in("rmsnorm")), (2 * 40 + 4) * 2);
  EXPECT_EQ(bytes(built_in("layernorm")), (2 * 40 + 8) * 2);
  EXPECT_EQ(bytes(built_in("add_rmsnorm")), (4 * 40 + 4) * 2);
  EXPECT_EQ(bytes(built_in("layernorm_rmsnorm")), (2 * 40 + 12) * 2);
}

}  // namespace
}  // namespace greta::test::norms_test
