#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: variant `tma` of scaled_gemm: kernels for sm_90, run on the sm_80 that hip-host
// emulates, with the tensor copies, counted barriers and warpgroup products that hip-host has
// beside it. Copies are written to shared memory when their barrier's phase ends, so that a missing
// wait gives NaN.
namespace greta::test::scaled_gemm_tma_test {
namespace {

struct Case {
  const char* name;
  const char* format;
  const char* scales;
  DType out;
  std::array<std::int64_t, 3> extents;
  const char* config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  const auto f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  return {
      {"tensors_around_the_ring",
       "e4m3",
       "tensor",
       bf16,
       {130, 72, 656},
       "BM=128 BN=64 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"rows_resident_of_odd_columns",
       "e5m2",
       "row",
       f16,
       {200, 133, 272},
       "BM=64 BN=32 GROUPS=1 STAGES=3 RESIDENT=1"},
      {"blocks_of_two_products",
       "e4m3",
       "block",
       f32,
       {264, 200, 400},
       "BM=128 BN=96 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"blocks_whose_tiles_cross_a_border",
       "e5m2",
       "block",
       bf16,
       {70, 500, 272},
       "BM=64 BN=160 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"integers_of_rows",
       "int8",
       "row",
       f16,
       {270, 136, 400},
       "BM=256 BN=32 GROUPS=2 STAGES=2 RESIDENT=1"},
      {"integers_of_blocks",
       "int8",
       "block",
       f32,
       {67, 133, 272},
       "BM=64 BN=16 GROUPS=1 STAGES=4 RESIDENT=0"},
      {"one_row", "e4m3", "row", bf16, {1, 40, 144}, "BM=64 BN=8 GROUPS=1 STAGES=3 RESIDENT=0"},
  };
}

/// Returns a Hopper of two compute units, on which few tiles are more than run at once.
DeviceInfo small_hopper() {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = 2;
  hopper.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return hopper;
}

class ScaledGemmTma : public ::testing::TestWithParam<Case> {};

TEST_P(ScaledGemmTma, IsRight) {
  const Case& c = GetParam();
  Problem problem{"scaled_gemm", c.out, c.out, {}, {}};
  if (c.format != std::string("e4m3")) problem.attributes.emplace_back("format", c.format);
  if (c.scales != std::string("tensor")) problem.attributes.emplace_back("scales", c.scales);
  problem.dims = {{"m", c.extents[0]}, {"n", c.extents[1]}, {"k", c.extents[2]}};
  const Operation& operation = built_in(problem.op);
  const std::string config = fmt::format("tma CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 {}", c.config);
  const auto parsed = operation.space(problem, small_hopper()).parse(config);
  ASSERT_TRUE(parsed) << parsed.failure().message;
  auto plan = operation.plan(problem, small_hopper(), *parsed);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();  // for NVRTC
  test::expect_right(operation, problem, plan, config, 1, test::device("hip-host:0"));
}

INSTANTIATE_TEST_SUITE_P(Ways, ScaledGemmTma, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::scaled_gemm_tma_test
