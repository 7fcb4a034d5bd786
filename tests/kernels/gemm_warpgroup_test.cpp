#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: warpgroup operations (INSTR=64 of `matrix`): kernels for sm_90, run on the sm_80 that
// hip-host emulates, where wgmma reads shared memory through descriptors as specified in the PTX
// manual. Covers tiles of all swizzles, both roles of the operands, partial tiles everywhere, and
// slices of which one is empty.
namespace greta::test::gemm_warpgroup_test {
namespace {

struct Case {
  const char* name;
  const char* layout;
  DType in, out;
  std::array<std::int64_t, 3> extents;
  std::vector<std::pair<std::string, std::string>> epilogue;
  const char* tile;
  const char* slices;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  const auto f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  return {
      {"two_along_m",
       "nn",
       f16,
       f16,
       {130, 72, 152},
       {{"epilogue", "bias,residual,gelu"}, {"beta", "2"}},
       "BM=128 BN=64 WM=64 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"two_products_along_m",
       "nt",
       bf16,
       bf16,
       {120, 70, 200},
       {{"epilogue", "silu"}},
       "BM=128 BN=64 WM=128 WN=64 BK=128 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"gates_along_m",
       "nt",
       f16,
       f16,
       {130, 72, 200},
       {{"epilogue", "bias,swiglu"}},
       "BM=128 BN=64 WM=64 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"gates_in_slices",
       "nt",
       bf16,
       f32,
       {72, 100, 264},
       {{"epilogue", "geglu"}},
       "BM=64 BN=128 WM=64 WN=128 BK=64 STAGES=3",
       "WALK=0 SPLIT=2 FOLD=1 ALIGN=0"},
      {"three_panels_across_k",
       "tn",
       f16,
       f32,
       {72, 200, 136},
       {},
       "BM=64 BN=192 WM=64 WN=192 BK=64 STAGES=4",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"panels_of_64_bytes_aligned",
       "nn",
       f16,
       f16,
       {70, 91, 150},
       {{"alpha", "-0.5"}},
       "BM=64 BN=32 WM=64 WN=32 BK=64 STAGES=3",
       "WALK=0 SPLIT=2 FOLD=0 ALIGN=1"},
      {"panels_of_32_bytes",
       "nn",
       bf16,
       f32,
       {80, 24, 72},
       {},
       "BM=64 BN=16 WM=64 WN=16 BK=64 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"swapped_with_an_empty_slice",
       "nt",
       bf16,
       f32,
       {13, 100, 264},
       {{"epilogue", "bias"}},
       "BM=16 BN=64 WM=16 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=4 FOLD=1 ALIGN=0"},
      {"swapped_across_k_two_along_n",
       "tn",
       f16,
       f16,
       {24, 136, 264},
       {{"epilogue", "residual,silu"}},
       "BM=32 BN=128 WM=32 WN=64 BK=128 STAGES=3",
       "WALK=0 SPLIT=2 FOLD=0 ALIGN=0"},
      {"swapped_two_products_along_n",
       "nn",
       f16,
       f16,
       {1, 136, 80},
       {},
       "BM=32 BN=128 WM=32 WN=128 BK=64 STAGES=6",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"three_along_m_part_of_a_panel_across_k",
       "nn",
       bf16,
       bf16,
       {200, 168, 136},
       {{"epilogue", "bias"}},
       "BM=192 BN=80 WM=64 WN=128 BK=64 STAGES=3",
       "WALK=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {"three_along_n_and_three_slices",
       "tn",
       f16,
       f32,
       {72, 200, 392},
       {},
       "BM=64 BN=192 WM=64 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=3 FOLD=1 ALIGN=0"},
      {"208_columns",
       "nt",
       f16,
       f16,
       {70, 450, 136},
       {{"epilogue", "residual"}},
       "BM=64 BN=208 WM=64 WN=256 BK=64 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"swapped_8_rows_in_two_panels",
       "nt",
       f16,
       f16,
       {7, 136, 456},
       {},
       "BM=8 BN=64 WM=16 WN=64 BK=128 STAGES=3",
       "WALK=0 SPLIT=3 FOLD=1 ALIGN=0"},
      {"swapped_24_rows_across_k",
       "tn",
       bf16,
       bf16,
       {24, 200, 264},
       {{"epilogue", "bias,silu"}},
       "BM=24 BN=192 WM=32 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=2 FOLD=1 ALIGN=0"},
      {"swapped_40_rows_two_products_along_n",
       "nn",
       f16,
       f32,
       {77, 200, 200},
       {},
       "BM=40 BN=128 WM=64 WN=128 BK=64 STAGES=4",
       "WALK=0 SPLIT=3 FOLD=0 ALIGN=0"},
      {"swapped_48_rows_across_k",
       "tn",
       f16,
       f16,
       {104, 72, 72},
       {},
       "BM=48 BN=64 WM=64 WN=64 BK=64 STAGES=3",
       "WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
  };
}

class GemmWarpgroups : public ::testing::TestWithParam<Case> {};

TEST_P(GemmWarpgroups, AreRight) {
  const Case& c = GetParam();
  auto attributes = c.epilogue;
  if (c.layout != std::string("nn")) attributes.insert(attributes.begin(), {"layout", c.layout});
  const auto& [m, n, k] = c.extents;
  const Problem problem = test::gemm_problem(m, n, k, c.in, c.out, attributes);
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const Operation& gemm = built_in("gemm");
  const auto config = gemm.space(problem, hopper)
                          .parse(fmt::format("matrix {} INSTR=64 VA=8 VB=8 PAD=0 ASYNC=1 "
                                             "FRAGMENTS=1 SWIZZLE=4 XCDS=1 {}",
                                             c.tile, c.slices));
  ASSERT_TRUE(config) << config.failure().message;
  auto plan = gemm.plan(problem, hopper, *config);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();  // for NVRTC
  test::expect_right(gemm, problem, plan, config->text(), 1, test::device("hip-host:0"));
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmWarpgroups, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// Returns whether the space of a problem contains INSTR=64.
bool offered(const char* architecture, DType type) {
  const Space space = built_in("gemm").space(test::gemm_problem(256, 256, 256, type, type),
                                             architecture_info(architecture).value());
  for (const Alternative& alternative : space.alternatives()) {
    if (alternative.variant != "matrix") continue;
    for (const Parameter& parameter : alternative.parameters) {
      if (parameter.name != "INSTR") continue;
      return std::count(parameter.values.begin(), parameter.values.end(), 64) > 0;
    }
  }
  return false;
}

TEST(GemmWarpgroupSpace, IsThatOfHopperAloneAndOfHalves) {
  EXPECT_TRUE(offered("sm_90", DType::f16));
  EXPECT_TRUE(offered("sm_90", DType::bf16));
  EXPECT_FALSE(offered("sm_90", DType::f32));
  for (const char* other : {"sm_80", "sm_100", "sm_120", "gfx942"}) {
    EXPECT_FALSE(offered(other, DType::f16)) << other;
  }
}

// NVRTC supports wgmma only under this architecture name. Other kernels run on newer GPUs as well.
TEST(GemmWarpgroupSpace, OnlyTheseKernelsNameTheirArchitecture) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const Operation& gemm = built_in("gemm");
  const Problem problem = test::gemm_problem(4095, 4095, 4095, DType::f16, DType::f16);
  const auto defaults = gemm.variant("matrix").defaults(gemm.shape(problem), hopper);
  ASSERT_FALSE(defaults.empty());
  const Config& config = defaults.front();
  EXPECT_EQ(config["INSTR"], 64) << config.text();
  const auto plan = gemm.plan(problem, hopper, config).value();
  ASSERT_EQ(plan.sources.size(), 2U);  // the GEMM, and copies with aligned rows
  EXPECT_EQ(plan.sources[0].options, std::vector<std::string>{"--gpu-architecture=sm_90a"});
  EXPECT_TRUE(plan.sources[1].options.empty());
}

}  // namespace
}  // namespace greta::test::gemm_warpgroup_test
