#include <fmt/format.h>
#include <gtest/gtest.h>

#include <limits>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: variant `tf32x3_tma` of GEMM: kernels for sm_90, run on the sm_80 that hip-host
// emulates, whose matrix instructions ignore the low 13 bits of TF32 as NVIDIA's do. Both operands
// go through registers, in tiles around the rings of buffers; parts and sums are as precise as
// those of f32.
namespace greta::test::gemm_tf32x3_tma_test {
namespace {

using Values = std::vector<std::pair<std::string, std::string>>;

struct Case {
  const char* name;
  std::array<std::int64_t, 3> extents;
  Values attributes;
  const char* config;
  std::int64_t batch = 1;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  return {
      {"a_in_registers_around_the_rings",
       {130, 72, 264},
       {{"layout", "nt"}, {"epilogue", "bias,residual,gelu"}, {"beta", "2"}},
       "BM=128 BN=96 PIECE=32 AHEAD=1 PROMOTE=1 ROUNDED=0 STAGES=2 WALK=0 SPLIT=1 FOLD=0 "
       "ALIGN=0"},
      {"b_in_registers_three_groups",
       {140, 200, 152},
       {{"epilogue", "bias"}},
       "BM=96 BN=192 PIECE=32 AHEAD=1 PROMOTE=1 ROUNDED=0 STAGES=3 WALK=1 SPLIT=1 FOLD=0 "
       "ALIGN=0"},
      {"sums_of_four_steps",
       {128, 64, 232},
       {{"epilogue", "silu"}},
       "BM=64 BN=64 PIECE=64 AHEAD=0 PROMOTE=4 ROUNDED=1 STAGES=2 WALK=0 SPLIT=1 FOLD=0 "
       "ALIGN=0"},
      {"sums_of_two_steps_a_in_registers",
       {64, 100, 104},
       {{"layout", "nt"}, {"alpha", "-0.5"}},
       "BM=64 BN=128 PIECE=128 AHEAD=0 PROMOTE=2 ROUNDED=1 STAGES=4 WALK=0 SPLIT=1 FOLD=0 "
       "ALIGN=0"},
      {"aligned_with_an_empty_slice",
       {60, 61, 131},
       {{"layout", "nt"}},
       "BM=64 BN=64 PIECE=32 AHEAD=0 PROMOTE=1 ROUNDED=0 STAGES=3 WALK=0 SPLIT=4 FOLD=0 "
       "ALIGN=1"},
      {"aligned_from_offsets",
       {130, 193, 64},
       {{"layout", "nt"},
        {"epilogue", "bias,silu"},
        {"alpha", "-0.5"},
        {"beta", "2"},
        {"a_offset", "1"},
        {"b_offset", "4"},
        {"c_offset", "4"},
        {"ldb", "65"}},
       "BM=64 BN=192 PIECE=96 AHEAD=0 PROMOTE=1 ROUNDED=0 STAGES=3 WALK=1 SPLIT=2 FOLD=0 "
       "ALIGN=1"},
      {"the_last_slice_adds",
       {160, 120, 200},
       {{"epilogue", "bias"}},
       "BM=160 BN=128 PIECE=160 AHEAD=0 PROMOTE=1 ROUNDED=0 STAGES=2 WALK=0 SPLIT=2 FOLD=1 "
       "ALIGN=0"},
      {"batch_across_k",
       {72, 96, 96},
       {{"epilogue", "residual"}},
       "BM=64 BN=64 PIECE=32 AHEAD=1 PROMOTE=1 ROUNDED=0 STAGES=2 WALK=0 SPLIT=1 FOLD=0 "
       "ALIGN=0",
       3},
      {"batch_with_a_common_b",
       {72, 96, 72},
       {{"layout", "nt"}, {"shared", "b"}},
       "BM=64 BN=96 PIECE=96 AHEAD=0 PROMOTE=1 ROUNDED=1 STAGES=2 WALK=0 SPLIT=1 FOLD=0 "
       "ALIGN=0",
       2},
  };
}

const Operation& gemm() {
  return built_in("gemm");
}

Problem problem_of(const std::array<std::int64_t, 3>& extents, const Values& attributes,
                   std::int64_t batch = 1) {
  // Attributes have an order.
  Values ordered;
  for (const char* name : {"layout", "epilogue", "alpha", "beta"}) {
    for (const auto& attribute : attributes) {
      if (attribute.first == name) ordered.push_back(attribute);
    }
  }
  ordered.emplace_back("math", "tf32x3");
  for (const char* name : {"shared", "a_offset", "b_offset", "c_offset", "lda", "ldb"}) {
    for (const auto& attribute : attributes) {
      if (attribute.first == name) ordered.push_back(attribute);
    }
  }
  Problem problem =
      test::gemm_problem(extents[0], extents[1], extents[2], DType::f32, DType::f32, ordered);
  if (batch > 1) problem.dims.emplace_back("batch", batch);
  return problem;
}

DeviceInfo hopper() {
  DeviceInfo info = architecture_info("sm_90").value();
  info.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return info;
}

LaunchPlan plan_of(const Problem& problem, const std::string& config) {
  const auto parsed = gemm().space(problem, hopper()).parse("tf32x3_tma BK=32 SWIZZLE=4 " + config);
  if (!parsed) throw Error(parsed.failure());
  LaunchPlan plan = gemm().plan(problem, hopper(), *parsed).value();
  for (KernelSource& source : plan.sources) source.options.clear();  // for NVRTC
  return plan;
}

class GemmTf32x3Tma : public ::testing::TestWithParam<Case> {};

TEST_P(GemmTf32x3Tma, IsRight) {
  const Case& c = GetParam();
  const Problem problem = problem_of(c.extents, c.attributes, c.batch);
  test::expect_right(gemm(), problem, plan_of(problem, c.config), c.config, 1,
                     test::device("hip-host:0"));
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmTf32x3Tma, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

// Fragments of A come from lines along k alone: layout tt gave other products.
TEST(GemmTf32x3TmaSpace, NeedsAAlongK) {
  for (const auto& [layout, valid] :
       {std::pair{"nn", true}, {"nt", true}, {"tt", false}, {"tn", false}}) {
    const Problem problem = problem_of({128, 128, 128}, {{"layout", layout}});
    const auto config = gemm()
                            .space(problem, hopper())
                            .parse(
                                "tf32x3_tma BK=32 SWIZZLE=4 BM=64 BN=64 PIECE=32 AHEAD=1 PROMOTE=1 "
                                "ROUNDED=0 STAGES=2 WALK=0 "
                                "SPLIT=1 FOLD=0 ALIGN=0");
    EXPECT_EQ(static_cast<bool>(config), valid) << layout;
    if (valid || config) continue;
    EXPECT_NE(config.failure().message.find("along_k"), std::string::npos);
  }
}

constexpr const char* small =
    "BM=64 BN=64 PIECE=32 AHEAD=1 PROMOTE=1 ROUNDED={} STAGES=2 WALK=0 SPLIT=1 FOLD=0 "
    "ALIGN=0";

TEST(GemmTf32x3TmaBound, TwoProductsAreOutsideOfIt) {
  const Problem problem = problem_of({64, 64, 128}, {{"layout", "nt"}});
  const auto inputs = gemm().inputs(problem, 1);
  for (const char* term :
       {"multiply_async<true>(sums, parts.of[i].low.word, further(highs, i * 32));",
        "multiply_async<true>(sums, parts.of[i].high.word, further(lows, i * 32));"}) {
    LaunchPlan plan = plan_of(problem, fmt::format(fmt::runtime(small), 0));
    const std::size_t at = plan.sources[0].text.find(term);
    ASSERT_NE(at, std::string::npos);
    plan.sources[0].text.replace(at, std::string(term).size(), ";");
    const auto run = run_plan(test::device("hip-host:0"), plan, gemm().tensors(problem), inputs);
    ASSERT_TRUE(run) << run.failure().message;
    EXPECT_FALSE(gemm().reference(problem, inputs, 1)->check(run->outputs).passed) << term;
  }
}

/// Returns C for one matrix with one value in its first line along k, and another one of ones.
std::vector<float> line_times_ones(const char* layout, std::size_t operand, float value,
                                   int rounded) {
  Values attributes;
  if (layout != std::string("nn")) attributes.emplace_back("layout", layout);
  const Problem problem = problem_of({64, 64, 32}, attributes);
  auto inputs = gemm().inputs(problem, 1);
  for (std::size_t i = 0; i < 64 * 32; ++i) {
    store_element(DType::f32, inputs[operand].data.data(), i, i == 0 ? value : 0.0);
    store_element(DType::f32, inputs[1 - operand].data.data(), i, 1.0);
  }
  const auto run = run_plan(test::device("hip-host:0"),
                            plan_of(problem, fmt::format(fmt::runtime(small), rounded)),
                            gemm().tensors(problem), inputs);
  EXPECT_TRUE(run) << run.failure().message;
  std::vector<float> line;  // a row of C, or a column
  for (std::size_t i = 0; i < 64; ++i) {
    line.push_back(static_cast<float>(run->outputs[0].at(operand == 0 ? i : i * 64)));
  }
  return line;
}

TEST(GemmTf32x3TmaValues, KeepInfinitiesNanAndTheLargestNumbers) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  for (const std::size_t operand : {0, 1}) {  // through registers, or from shared memory
    for (const int rounded : {0, 1}) {
      SCOPED_TRACE(fmt::format("operand {} rounded {}", operand, rounded));
      for (const float value :
           {infinity, -infinity, 0x1.fffffp127F, -0x1.fffffp127F, 0x1.fffffp0F, 0x1p-126F}) {
        for (const float result : line_times_ones("nt", operand, value, rounded)) {
          EXPECT_EQ(result, value);
        }
      }
      const float nan = std::numeric_limits<float>::quiet_NaN();
      for (const float result : line_times_ones("nt", operand, nan, rounded)) {
        EXPECT_TRUE(std::isnan(result));
      }
    }
  }
  for (const float result : line_times_ones("nn", 1, infinity, 0)) EXPECT_EQ(result, infinity);
}

TEST(GemmTf32x3TmaProblem, IsThereOnlyWhereItIsAllowedAndPossible) {
  const auto count = [](const Problem& problem, const DeviceInfo& info) {
    return gemm().space(problem, info).count("tf32x3_tma");
  };
  const DeviceInfo sm_80 = architecture_info("sm_80").value();
  EXPECT_GT(count(problem_of({64, 64, 64}, {}), hopper()), 0U);
  EXPECT_GT(count(problem_of({64, 64, 64}, {{"layout", "nt"}}), hopper()), 0U);
  EXPECT_EQ(count(problem_of({64, 64, 64}, {{"layout", "tn"}}), hopper()), 0U);
  EXPECT_EQ(count(problem_of({64, 64, 64}, {}), sm_80), 0U);
  EXPECT_EQ(count(test::gemm_problem(64, 64, 64, DType::f32, DType::f32, {}), hopper()), 0U);
}

}  // namespace
}  // namespace greta::test::gemm_tf32x3_tma_test
