#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "kernels/model/problem_rules.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: variant `tf32x3` of GEMM, products of f32 as three of TF32 on the sm_80 that hip-host
// emulates. It is within the bound of f32 (one product fewer is not), keeps infinities, NaN and the
// largest numbers, and is there only where the problem allows it.
namespace greta::test::gemm_tf32x3_test {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

const Operation& gemm() {
  return built_in("gemm");
}

Device& sm_80() {
  return test::device("hip-host:0");
}

Problem problem_of(std::int64_t m, std::int64_t n, std::int64_t k, Values attributes) {
  attributes.emplace_back("math", "tf32x3");
  return test::gemm_problem(m, n, k, DType::f32, DType::f32, attributes);
}

LaunchPlan plan_of(const Problem& problem, const std::string& config) {
  const auto parsed = gemm().space(problem, sm_80().info()).parse("tf32x3 " + config);
  EXPECT_TRUE(parsed) << parsed.failure().message;
  return gemm().plan(problem, sm_80().info(), *parsed).value();
}

constexpr const char* copied =
    "BM=64 BN=64 WM=32 WN=32 BK=32 INSTR=16 VA=4 VB=4 PAD=0 STAGES=3 ASYNC=1 FRAGMENTS=2 "
    "SWIZZLE=8 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0";

struct Case {
  const char* name;
  Problem problem;
  const char* config;
};

void PrintTo(const Case& value, std::ostream* out) {
  *out << value.name;
}

std::vector<Case> cases() {
  return {
      {"copied", problem_of(70, 90, 152, {{"layout", "nt"}, {"epilogue", "bias,gelu"}}), copied},
      {"turned", problem_of(33, 60, 100, {{"alpha", "-0.5"}}),
       "BM=32 BN=64 WM=16 WN=32 BK=16 INSTR=16 VA=2 VB=4 PAD=1 STAGES=2 ASYNC=0 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=2 FOLD=1 ALIGN=0"},
      {"both_turned", problem_of(61, 45, 99, {{"layout", "tn"}, {"beta", "2"}}),
       "BM=64 BN=64 WM=32 WN=64 BK=16 INSTR=16 VA=1 VB=1 PAD=0 STAGES=1 ASYNC=0 FRAGMENTS=2 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {"single_elements_copied", problem_of(20, 31, 77, {{"layout", "nt"}}),
       "BM=16 BN=32 WM=16 WN=16 BK=16 INSTR=16 VA=1 VB=1 PAD=0 STAGES=4 ASYNC=1 FRAGMENTS=1 "
       "SWIZZLE=1 WALK=0 XCDS=1 SPLIT=1 FOLD=0 ALIGN=0"},
  };
}

class GemmTf32x3 : public ::testing::TestWithParam<Case> {};

TEST_P(GemmTf32x3, IsRight) {
  const Case& c = GetParam();
  test::expect_right(gemm(), c.problem, plan_of(c.problem, c.config), c.config, 1, sm_80());
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmTf32x3, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(GemmTf32x3Bound, TwoProductsAreOutsideOfIt) {
  const Problem problem = problem_of(64, 64, 128, {{"layout", "nt"}});
  const auto inputs = gemm().inputs(problem, 1);
  for (const char* term :
       {"multiply_chunks(part, a.low, b.high);", "multiply_chunks(part, a.high, b.low);"}) {
    LaunchPlan plan = plan_of(problem, copied);
    const std::size_t at = plan.sources[0].text.find(term);
    ASSERT_NE(at, std::string::npos);
    plan.sources[0].text.replace(at, std::string(term).size(), "");
    const auto run = run_plan(sm_80(), plan, gemm().tensors(problem), inputs);
    ASSERT_TRUE(run) << run.failure().message;
    EXPECT_FALSE(gemm().reference(problem, inputs, 1)->check(run->outputs).passed) << term;
  }
}

/// Returns C for an A of 16 x 16 with one value in its first row, and a B of ones.
std::vector<float> first_row_times_ones(float value) {
  const Problem problem = problem_of(16, 16, 16, {{"layout", "nt"}});
  auto inputs = gemm().inputs(problem, 1);
  for (std::size_t i = 0; i < 256; ++i) {
    store_element(DType::f32, inputs[0].data.data(), i, i == 3 ? value : 0.0);
    store_element(DType::f32, inputs[1].data.data(), i, 1.0);
  }
  const auto run = run_plan(sm_80(),
                            plan_of(problem,
                                    "BM=16 BN=16 WM=16 WN=16 BK=16 INSTR=16 VA=4 VB=4 PAD=0 "
                                    "STAGES=2 ASYNC=1 FRAGMENTS=1 SWIZZLE=1 WALK=0 XCDS=1 "
                                    "SPLIT=1 FOLD=0 ALIGN=0"),
                            gemm().tensors(problem), inputs);
  EXPECT_TRUE(run) << run.failure().message;
  std::vector<float> row;
  for (std::size_t i = 0; i < 16; ++i) row.push_back(static_cast<float>(run->outputs[0].at(i)));
  return row;
}

TEST(GemmTf32x3Values, KeepInfinitiesNanAndTheLargestNumbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  // The high part of large numbers would be rounded to infinity.
  for (const float value :
       {infinity, -infinity, 0x1.fffffp127F, -0x1.fffffp127F, 0x1.fffffp0F, 0x1p-126F}) {
    for (const float result : first_row_times_ones(value)) EXPECT_EQ(result, value);
  }
  for (const float result : first_row_times_ones(std::numeric_limits<float>::quiet_NaN())) {
    EXPECT_TRUE(std::isnan(result));
  }
}

TEST(GemmTf32x3Problem, IsThereOnlyWhereItIsAllowed) {
  const Problem allowed = problem_of(64, 64, 64, {});
  const Problem exact = test::gemm_problem(64, 64, 64, DType::f32, DType::f32, {});
  const DeviceInfo& info = sm_80().info();
  EXPECT_GT(gemm().space(allowed, info).count("tf32x3"), 0U);
  EXPECT_EQ(gemm().space(exact, info).count("tf32x3"), 0U);
  EXPECT_EQ(gemm().space(allowed, info).count("matrix"), 0U);
  EXPECT_EQ(gemm().space(allowed, test::device("hip-host:1").info()).count("tf32x3"), 0U);
  EXPECT_NE(allowed.key(), exact.key());
  const auto of_halves = kernels::make_problem(
      gemm(), {{{"m", "8"}, {"n", "8"}, {"k", "8"}, {"math", "tf32x3"}}, "f16", ""});
  ASSERT_FALSE(of_halves);
  EXPECT_NE(of_halves.failure().message.find("needs dtype f32"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::gemm_tf32x3_test
