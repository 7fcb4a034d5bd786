#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: variant `tma` of GEMM: kernels for sm_90, run on the sm_80 that hip-host emulates, with
// the tensor copies and counted barriers that hip-host has beside it. Copies are written to shared
// memory when their barrier's phase ends, so that a missing wait gives NaN.
namespace greta::test::gemm_tma_test {
namespace {

struct Case {
  const char* name;
  const char* layout;
  DType in, out;
  std::array<std::int64_t, 3> extents;
  std::vector<std::pair<std::string, std::string>> epilogue;
  const char* config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  const auto f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  return {
      {"two_groups_around_the_ring",
       "nt",
       f16,
       f16,
       {130, 72, 520},
       {{"epilogue", "bias,residual,gelu"}, {"beta", "2"}},
       "BM=128 BN=64 BK=64 GROUPS=2 PINGPONG=0 STAGES=2 RESIDENT=0 WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"resident_both_across_k",
       "nn",
       bf16,
       bf16,
       {200, 168, 152},
       {{"epilogue", "bias"}},
       "BM=64 BN=80 BK=64 GROUPS=1 PINGPONG=0 STAGES=3 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {"resident_two_products_along_m",
       "tn",
       f16,
       f32,
       {264, 200, 72},
       {{"epilogue", "silu"}},
       "BM=128 BN=64 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"aligned_with_an_empty_slice",
       "nn",
       f16,
       f16,
       {60, 61, 261},
       {{"alpha", "-0.5"}},
       "BM=64 BN=32 BK=64 GROUPS=1 PINGPONG=0 STAGES=3 RESIDENT=0 WALK=0 SPLIT=4 FOLD=0 ALIGN=1"},
      {"swapped_the_last_slice_adds",
       "nt",
       bf16,
       f32,
       {13, 200, 264},
       {{"epilogue", "bias"}},
       "BM=16 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=4 RESIDENT=0 WALK=0 SPLIT=4 FOLD=1 ALIGN=0"},
      {"pingpong_with_packed_elements",
       "nt",
       bf16,
       bf16,
       {330, 200, 200},
       {{"epilogue", "bias,residual,silu"}},
       "BM=64 BN=80 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
      {"three_take_turns_of_two_products",
       "tn",
       f16,
       f32,
       {520, 136, 136},
       {{"epilogue", "residual"}},
       "BM=128 BN=48 BK=64 GROUPS=3 PINGPONG=1 STAGES=2 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0"},
      {"swapped_across_k_resident",
       "tn",
       f16,
       f16,
       {104, 200, 200},
       {{"epilogue", "residual,silu"}},
       "BM=40 BN=128 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0"},
  };
}

/// Returns a Hopper of two compute units, on which few tiles are more than run at once.
DeviceInfo small_hopper() {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = 2;
  hopper.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return hopper;
}

void expect_right(const Problem& problem, const Config& config, std::uint64_t seed) {
  const Operation& gemm = built_in("gemm");
  auto plan = gemm.plan(problem, small_hopper(), config);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();  // for NVRTC
  test::expect_right(gemm, problem, plan, config.text(), seed, test::device("hip-host:0"));
}

class GemmTma : public ::testing::TestWithParam<Case> {};

TEST_P(GemmTma, IsRight) {
  const Case& c = GetParam();
  auto attributes = c.epilogue;
  if (c.layout != std::string("nn")) attributes.insert(attributes.begin(), {"layout", c.layout});
  const auto& [m, n, k] = c.extents;
  const Problem problem = test::gemm_problem(m, n, k, c.in, c.out, attributes);
  const auto config = built_in("gemm")
                          .space(problem, small_hopper())
                          .parse(fmt::format("tma CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 {}", c.config));
  ASSERT_TRUE(config) << config.failure().message;
  expect_right(problem, *config, 1);
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmTma, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::gemm_tma_test
