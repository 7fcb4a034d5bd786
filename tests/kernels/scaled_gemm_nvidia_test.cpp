#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: variants of scaled_gemm for NVIDIA GPUs with matrix cores of fp8, run on the sm_80 that
// hip-host emulates, and which variant is the default of few rows.
//
// `tma` and `tma_rows`: with the tensor copies, counted barriers and warpgroup products that
// hip-host has beside sm_80. Copies are written to shared memory when their barrier's phase ends,
// so that a missing wait gives NaN. `matrix_rows`: products of fp8 (sm_89), and of f16 in place of
// these (sm_90).
namespace greta::test::scaled_gemm_nvidia_test {
namespace {

struct Case {
  const char* name;
  const char* format;
  const char* scales;
  DType out;
  std::array<std::int64_t, 3> extents;
  const char* config;
  const char* architecture = "sm_90";
  std::int64_t groups = 0;  ///< of grouped products, masked if it is odd; 0: one product
  const char* epilogue = "none";
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
       "tma BM=128 BN=64 GROUPS=2 STAGES=2 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=1 STAGGER=0 SUMS=1"},
      {"rows_resident_of_odd_columns",
       "e5m2",
       "row",
       f16,
       {200, 133, 272},
       "tma BM=64 BN=32 GROUPS=1 STAGES=3 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=0 STAGGER=0 SUMS=1"},
      {"blocks_of_two_products",
       "e4m3",
       "block",
       f32,
       {264, 200, 400},
       "tma BM=128 BN=96 GROUPS=1 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=1 STAGGER=0 SUMS=1"},
      {"blocks_whose_tiles_cross_a_border",
       "e5m2",
       "block",
       bf16,
       {70, 500, 272},
       "tma BM=64 BN=160 GROUPS=1 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=0 STAGGER=0 SUMS=1"},
      {"integers_of_rows",
       "int8",
       "row",
       f16,
       {270, 136, 400},
       "tma BM=256 BN=32 GROUPS=2 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=1 STAGGER=0 SUMS=1"},
      {"integers_of_blocks",
       "int8",
       "block",
       f32,
       {67, 133, 272},
       "tma BM=64 BN=16 GROUPS=1 STAGES=4 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=0 STAGGER=0 SUMS=1"},
      {"one_row",
       "e4m3",
       "row",
       bf16,
       {1, 40, 144},
       "tma BM=64 BN=8 GROUPS=1 STAGES=3 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 "
       "STORE=0 STAGGER=0 SUMS=1"},
      {"slices_as_f16",
       "e4m3",
       "row",
       bf16,
       {12, 40, 1296},
       "matrix_rows WAVES=4 TN=2 RT=1 UNROLL=2 SPLIT=2"},
      {"few_rows_as_f16",
       "e5m2",
       "block",
       f32,
       {5, 150, 400},
       "matrix_rows WAVES=2 TN=1 RT=1 UNROLL=1 SPLIT=1"},
      {"slices_of_fp8",
       "e4m3",
       "block",
       f16,
       {40, 136, 656},
       "matrix_rows WAVES=2 TN=2 RT=2 UNROLL=1 SPLIT=4",
       "sm_89"},
      {"few_rows_of_fp8",
       "e5m2",
       "tensor",
       f32,
       {7, 33, 272},
       "matrix_rows WAVES=2 TN=1 RT=1 UNROLL=1 SPLIT=2",
       "sm_89"},
      {"lines_of_b_as_rows_around_the_ring",
       "e4m3",
       "row",
       bf16,
       {12, 200, 656},
       "tma_rows BM=16 BN=128 GROUPS=2 STAGES=2 SPLIT=1"},
      {"lines_of_b_as_rows_of_two_products_and_tiles_of_rows",
       "e5m2",
       "tensor",
       f32,
       {20, 133, 272},
       "tma_rows BM=8 BN=128 GROUPS=1 STAGES=4 SPLIT=1"},
      {"lines_of_b_as_rows_with_blocks",
       "e4m3",
       "block",
       f16,
       {33, 330, 400},
       "tma_rows BM=32 BN=256 GROUPS=4 STAGES=2 SPLIT=1"},
      {"sums_of_two_steps_in_a_cluster",
       "e4m3",
       "tensor",
       bf16,
       {300, 200, 912},
       "tma BM=128 BN=64 GROUPS=2 STAGES=3 RESIDENT=1 CLUSTER_M=2 CLUSTER_N=1 SWIZZLE=4 STORE=1 "
       "STAGGER=1 SUMS=2"},
      {"sums_of_two_steps_of_blocks",
       "e5m2",
       "block",
       f32,
       {190, 133, 1296},
       "tma BM=64 BN=96 GROUPS=1 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=0 SUMS=2"},
      {"sums_of_two_steps_with_one",
       "e4m3",
       "block",
       bf16,
       {70, 40, 112},
       "tma BM=64 BN=32 GROUPS=1 STAGES=2 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=0 SUMS=2"},
      {"integers_of_blocks_of_two_steps",
       "int8",
       "block",
       bf16,
       {129, 264, 1040},
       "tma BM=192 BN=32 GROUPS=3 STAGES=4 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=1 SUMS=2"},
      {"groups_of_rows_resident",
       "e4m3",
       "row",
       bf16,
       {400, 72, 272},
       "tma BM=64 BN=64 GROUPS=1 STAGES=3 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=0 SUMS=1",
       "sm_90",
       6},
      {"groups_of_blocks_masked",
       "e5m2",
       "block",
       bf16,
       {130, 200, 400},
       "tma BM=128 BN=96 GROUPS=2 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=1 "
       "STAGGER=0 SUMS=1",
       "sm_90",
       3},
      {"gates_of_tensors",
       "e4m3",
       "tensor",
       f16,
       {300, 100, 272},
       "tma BM=64 BN=64 GROUPS=1 STAGES=2 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=0 SUMS=1",
       "sm_90",
       4,
       "swiglu"},
      {"gates_of_rows_masked",
       "e4m3",
       "row",
       bf16,
       {100, 104, 144},
       "tma BM=64 BN=96 GROUPS=1 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=1 "
       "STAGGER=0 SUMS=1",
       "sm_90",
       5,
       "geglu"},
      {"gates_of_blocks",
       "e4m3",
       "block",
       bf16,
       {260, 192, 400},
       "tma BM=128 BN=128 GROUPS=2 STAGES=2 RESIDENT=1 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=1 SUMS=1",
       "sm_90",
       4,
       "swiglu"},
      {"gates_of_integers",
       "int8",
       "row",
       f32,
       {90, 40, 272},
       "tma BM=64 BN=16 GROUPS=1 STAGES=4 RESIDENT=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 STORE=0 "
       "STAGGER=0 SUMS=1",
       "sm_90",
       2,
       "swiglu"},
  };
}

/// Returns a GPU of two compute units, on which few tiles are more than run at once.
DeviceInfo small_gpu(const char* architecture) {
  DeviceInfo gpu = architecture_info(architecture).value();
  gpu.compute_units = 2;
  gpu.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return gpu;
}

Problem problem_of(const Case& c) {
  Problem problem{"scaled_gemm", c.out, c.out, {}, {}};
  if (c.format != std::string("e4m3")) problem.attributes.emplace_back("format", c.format);
  if (c.scales != std::string("tensor")) problem.attributes.emplace_back("scales", c.scales);
  problem.dims = {{"m", c.extents[0]}, {"n", c.extents[1]}, {"k", c.extents[2]}};
  if (c.groups == 0) return problem;
  problem.op = "scaled_grouped_gemm";
  problem.dims.insert(problem.dims.begin(), {"groups", c.groups});
  if (c.epilogue != std::string("none")) problem.attributes.emplace_back("epilogue", c.epilogue);
  if (c.groups % 2 != 0) problem.attributes.insert(problem.attributes.begin(), {"form", "masked"});
  return problem;
}

class ScaledGemmNvidia : public ::testing::TestWithParam<Case> {};

TEST_P(ScaledGemmNvidia, IsRight) {
  const Case& c = GetParam();
  const Problem problem = problem_of(c);
  const DeviceInfo gpu = small_gpu(c.architecture);
  const Operation& operation = built_in(problem.op);
  const bool tiles = std::string_view(c.config).substr(0, 4) == "tma ";
  const auto parsed =
      operation.space(problem, gpu).parse(c.config + std::string(tiles ? " SPLIT=1 FOLD=1" : ""));
  ASSERT_TRUE(parsed) << parsed.failure().message;
  auto plan = operation.plan(problem, gpu, *parsed);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();  // for NVRTC
  test::expect_right(operation, problem, plan, c.config, 1, test::device("hip-host:0"));
}

// Threads store 32 of 96, 160 or 224 columns at a time, which took 3.4 us of 25 on an H200.
TEST(ScaledGemmDefaults, StoreManyColumnsByCopiesWhereThreadsStoreFew) {
  const Operation& operation = built_in("scaled_gemm");
  const DeviceInfo device = architecture_info("sm_90").value();
  for (const std::int64_t n : {12160, 12161}) {
    const Problem problem =
        catalog().read(fmt::format("scaled_gemm dtype=bf16 out=bf16 m=604 n={} k=464", n)).value();
    int narrow = 0;
    for (const Config& config :
         operation.variant("tma").defaults(operation.shape(problem), device)) {
      if (config["BN"] <= 64 || config["BN"] % 64 == 0) continue;
      EXPECT_EQ(config["STORE"], n % 8 == 0 ? 1 : 0) << config.text();
      ++narrow;
    }
    EXPECT_GT(narrow, 0);
  }
}

TEST(ScaledGemmRows, PairsOfWorkgroupsShareKByDefaultWhereRowsAreFew) {
  const DeviceInfo gpu = architecture_info("sm_90").value();
  const Operation& operation = built_in("scaled_gemm");
  for (const std::int64_t m : {1, 16, 4096}) {
    const Problem problem =
        problem_of({"", "e4m3", "tensor", DType::bf16, {m, 4096, 4096}, "", ""});
    const Config config = operation.default_config(problem, gpu);
    EXPECT_EQ(config.variant, m > 16 ? "tma" : "tma_rows") << m;
    if (m > 16) continue;
    EXPECT_EQ(config["SPLIT"], 2) << config.text();  // larger clusters do not all run at once
    EXPECT_GE(4096 / config["BN"] * config["SPLIT"], 120) << config.text();
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, ScaledGemmNvidia, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::scaled_gemm_nvidia_test
