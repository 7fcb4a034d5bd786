// Protects: the bound of quantized_gemm with math rounded_weights. Products of weights that are
// rounded to A's type are within it, for each format and kind of input, and not within the bound of
// exact products. Weights that are rounded to fewer bits are not within it.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "kernels/model/problem_rules.hpp"
#include "kernels/prior/predicted_config.hpp"
#include "kernels/prior/prior.hpp"
#include "kernels/reference/dequantized.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::quantized_gemm_rounded_test {
namespace {

using kernels::WeightFormat;

using Rounding = std::function<double(double)>;

Rounding to_type(DType type) {
  return [type](double value) {
    std::array<std::byte, 4> stored{};
    store_element(type, stored.data(), 0, value);
    return load_element(type, stored.data(), 0);
  };
}

Rounding to_bits(int bits) {
  return [bits](double value) {
    int exponent = 0;
    const double fraction = std::frexp(value, &exponent);
    return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
  };
}

/// Returns C of weights that are rounded, with f64 sums.
HostTensor product(const Problem& problem, const std::vector<HostTensor>& inputs,
                   const Rounding& rounded) {
  const auto format = *kernels::weight_format_from_string(problem.attribute("weights", "int4"));
  const std::int64_t m = problem.dim("m"), n = problem.dim("n"), k = problem.dim("k");
  const auto weights = kernels::dequantized({.format = format,
                                             .rows = n,
                                             .k = k,
                                             .group = 128,
                                             .integers = &inputs[1],
                                             .scales = inputs.size() > 2 ? &inputs[2] : nullptr,
                                             .zeros = nullptr});
  HostTensor c{{"C", Role::output, problem.out_dtype, m, n}, {}};
  c.data.resize(c.spec.bytes());
  for (std::int64_t row = 0; row < m; ++row) {
    for (std::int64_t col = 0; col < n; ++col) {
      double sum = 0;
      for (std::int64_t i = 0; i < k; ++i) {
        sum += inputs[0].at(static_cast<std::size_t>(row * k + i)) *
               rounded(weights[static_cast<std::size_t>(col * k + i)]);
      }
      store_element(problem.out_dtype, c.data.data(), static_cast<std::size_t>(row * n + col), sum);
    }
  }
  return c;
}

class RoundedWeights : public ::testing::TestWithParam<std::tuple<const char*, DType>> {};

TEST_P(RoundedWeights, AreWithinTheirBoundAlone) {
  const auto& [weights, type] = GetParam();
  Problem exact{"quantized_gemm", type, DType::f32, {}, {{"m", 3}, {"n", 70}, {"k", 768}}};
  if (weights != std::string_view("int4")) exact.attributes.emplace_back("weights", weights);
  Problem rounded = exact;
  rounded.attributes.emplace_back("math", "rounded_weights");
  const Operation& operation = built_in(exact.op);
  check_problem(operation, rounded).value();
  for (const auto style : {kernels::InputStyle::plain, kernels::InputStyle::adversarial}) {
    for (const std::uint64_t seed : {1, 2, 3}) {
      const auto inputs = operation.inputs(rounded, seed, style);
      const HostTensor c = product(rounded, inputs, to_type(type));
      const auto passes = [&](const Problem& problem) {
        return operation.reference(problem, inputs, seed)->check({c}).passed;
      };
      EXPECT_TRUE(passes(rounded)) << seed;
      if (style == kernels::InputStyle::plain) EXPECT_FALSE(passes(exact)) << seed;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, RoundedWeights,
                         ::testing::Combine(::testing::Values("int4", "int8", "q4_0", "q8_0",
                                                              "q4_k", "q6_k"),
                                            ::testing::Values(DType::f16, DType::bf16)),
                         [](const auto& instance) {
                           return fmt::format("{}_of_{}", std::get<0>(instance.param),
                                              to_string(std::get<1>(instance.param)));
                         });

// The bound is 8 roundings, so that 6 bits in place of 11 exceed it.
TEST(RoundedWeightsBound, FindsWeightsOfFewerBits) {
  const Problem problem =
      catalog()
          .read("quantized_gemm dtype=f16 out=f32 math=rounded_weights m=64 n=64 k=128")
          .value();
  const Operation& operation = built_in(problem.op);
  auto inputs = operation.inputs(problem, 1, kernels::InputStyle::plain);
  // A row of A with one element: a product is a weight.
  for (std::size_t i = 0; i < inputs[0].spec.elements(); ++i) {
    store_element(DType::f16, inputs[0].data.data(), i, i % 128 == i / 128 ? 1 : 0);
  }
  const auto reference = operation.reference(problem, inputs, 1);
  EXPECT_TRUE(reference->check({product(problem, inputs, to_bits(11))}).passed);
  EXPECT_FALSE(reference->check({product(problem, inputs, to_bits(6))}).passed);
}

// A permission offers more: what is predicted with it is no slower than without it, and rounds
// where that gains much.
TEST(RoundedWeightsPrediction, IsNoSlowerThanThatOfExactProducts) {
  const Operation& operation = built_in("quantized_gemm");
  const DeviceInfo hopper = architecture_info("sm_90").value();
  for (const char* weights : {"int4", "int8", "q4_k", "q6_k"}) {
    for (const std::int64_t m : {17, 32, 64, 128, 256, 1024, 2048}) {
      Problem exact{
          "quantized_gemm", DType::f16, DType::f16, {}, {{"m", m}, {"n", 4096}, {"k", 4096}}};
      if (weights != std::string_view("int4")) exact.attributes.emplace_back("weights", weights);
      Problem rounded = exact;
      rounded.attributes.emplace_back("math", "rounded_weights");
      SCOPED_TRACE(rounded.key());
      const Config without = predicted_config(operation, exact, hopper).value();
      const Config with = predicted_config(operation, rounded, hopper).value();
      const kernels::StaticPrior prior(operation, rounded, hopper);
      EXPECT_LE(prior.cost(with).value(), prior.cost(without).value() * (1 + 1e-9))
          << with.text() << " in place of " << without.text();
      if (m >= 1024) EXPECT_EQ(with["ROUND"], 1) << with.text();
    }
  }
}

TEST(RoundedWeightsBound, IsOfTypesOf16Bits) {
  const auto refused =
      catalog().read("quantized_gemm dtype=f32 out=f32 math=rounded_weights m=3 n=4 k=128");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("needs dtype f16 or bf16"), std::string::npos)
      << refused.failure().message;
}

}  // namespace
}  // namespace greta::test::quantized_gemm_rounded_test
