// Protects: groups of rows are multiplied by quantised weights of their own, in every distribution
// of rows, and the reference of that is the one of grouped_gemm for the dequantised weights.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "kernels/reference/dequantized.hpp"
#include "tests/kernels/group_cases.hpp"

namespace greta::test::quantized_grouped_gemm_test {
namespace {

constexpr std::int64_t k = 256;

const Operation& operation() {
  return built_in("quantized_grouped_gemm");
}

Problem problem_of(bool masked, const char* weights, DType type, const char* epilogue = "none") {
  Problem problem{"quantized_grouped_gemm", type, DType::f32, {}, {}};
  if (masked) problem.attributes.emplace_back("form", "masked");
  if (std::string(weights) != "int4") problem.attributes.emplace_back("weights", weights);
  if (std::string(weights) == "int4") {
    problem.attributes.emplace_back("group", "64");
    problem.attributes.emplace_back("zeros", "groups");
  }
  if (std::string(epilogue) != "none") problem.attributes.emplace_back("epilogue", epilogue);
  problem.dims = dims_of_groups(masked, 20, k);
  return problem;
}

/// Returns whether a device has the matrix operations of the variant `matrix`.
bool has_matrix_cores(const DeviceInfo& device, DType type) {
  const auto fits = [&](const MatrixOperation& o) { return o.input == type && o.m == 16; };
  return device.language == Language::hip && type != DType::f32 &&
         std::any_of(device.matrix_operations.begin(), device.matrix_operations.end(), fits);
}

void expect_right_products(Device& device, const Problem& problem) {
  const bool cores = has_matrix_cores(device.info(), problem.dtype);
  expect_right_groups(
      device, operation(), problem,
      cores ? std::set<std::string>{"tma"} : std::set<std::string>{"matrix", "tma"});
}

class QuantizedGroupedGemm : public ::testing::TestWithParam<std::string> {};

TEST_P(QuantizedGroupedGemm, ComputesAnyDistributionOfRows) {
  Device& device = test::device(GetParam());
  expect_right_products(device, problem_of(false, "int4", DType::f16));
  expect_right_products(device, problem_of(true, "q8_0", DType::f32));
}

TEST_P(QuantizedGroupedGemm, ComputesGatesOfEachGroup) {
  Device& device = test::device(GetParam());
  expect_right_products(device, problem_of(true, "q4_k", DType::bf16, "swiglu"));
  expect_right_products(device, problem_of(false, "q6_k", DType::f16, "geglu"));
}

TEST(QuantizedGroupedGemmDevices, HaveMatrixCores) {
  const auto devices = test::usable_devices();
  EXPECT_TRUE(std::any_of(devices.begin(), devices.end(), [](const std::string& id) {
    return has_matrix_cores(test::device(id).info(), DType::f16);
  })) << "the variant matrix would not be tested";
}

INSTANTIATE_TEST_SUITE_P(Devices, QuantizedGroupedGemm, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });

const HostTensor* find(const std::vector<HostTensor>& inputs, const char* name) {
  const auto found = std::find_if(inputs.begin(), inputs.end(), [&](const HostTensor& tensor) {
    return tensor.spec.name == name;
  });
  return found == inputs.end() ? nullptr : &*found;
}

/// Returns the inputs of grouped_gemm: B as numbers.
std::vector<HostTensor> dequantised_inputs(const std::vector<HostTensor>& inputs,
                                           const char* weights) {
  const HostTensor* const integers = find(inputs, "B");
  const auto numbers =
      kernels::dequantized({.format = kernels::weight_format_from_string(weights).value(),
                            .rows = integers->spec.rows,
                            .k = k,
                            .group = 64,
                            .integers = integers,
                            .scales = find(inputs, "scales"),
                            .zeros = find(inputs, "zeros")});
  HostTensor b{{"B", Role::input, DType::f32, integers->spec.rows, k}, {}};
  b.data.resize(b.spec.bytes());
  std::memcpy(b.data.data(), numbers.data(), b.data.size());
  return {inputs.front(), std::move(b), inputs.back()};
}

TEST(QuantizedGroupedGemmReference, IsThatOfTheDequantisedWeights) {
  for (const bool masked : {false, true}) {
    for (const char* weights : {"int4", "q4_k"}) {
      const Problem problem = problem_of(masked, weights, DType::f32, masked ? "swiglu" : "none");
      auto inputs = operation().inputs(problem, 1);
      set_rows(inputs, distributions(masked).back());
      Problem plain = problem;
      plain.op = "grouped_gemm";
      std::erase_if(plain.attributes, [](const auto& attribute) {
        return attribute.first != "form" && attribute.first != "epilogue";
      });
      const auto got = operation().reference(problem, inputs, 1)->expected().value().front();
      const auto want = built_in("grouped_gemm")
                            .reference(plain, dequantised_inputs(inputs, weights), 1)
                            ->expected()
                            .value()
                            .front();
      ASSERT_EQ(got.size(), want.size());
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_EQ(std::isnan(got[i].value), std::isnan(want[i].value)) << i;
        if (std::isnan(got[i].value)) continue;
        ASSERT_EQ(got[i].value, want[i].value) << i;
        ASSERT_EQ(got[i].bound, want[i].bound) << i;
      }
    }
  }
}

TEST(QuantizedGroupedGemmProblem, HasWholeGroupsAndRowsOfWeightsOfThirtyTwoBits) {
  Problem problem = problem_of(false, "q4_k", DType::f16);
  EXPECT_TRUE(operation().check(problem));
  problem.extent("k") = 128;
  EXPECT_NE(operation().check(problem).failure().message.find("256"), std::string::npos);
  problem.extent("k") = 256;
  problem.extent("n") = 1 << 22;
  problem.extent("groups") = 1 << 10;
  EXPECT_NE(operation().check(problem).failure().message.find("groups"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::quantized_grouped_gemm_test
