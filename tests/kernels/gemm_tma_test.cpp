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
       "BM=128 BN=64 BK=64 GROUPS=2 PINGPONG=0 STAGES=2 RESIDENT=0 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"resident_both_across_k",
       "nn",
       bf16,
       bf16,
       {200, 168, 152},
       {{"epilogue", "bias"}},
       "BM=64 BN=80 BK=64 GROUPS=1 PINGPONG=0 STAGES=3 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"resident_two_products_along_m",
       "tn",
       f16,
       f32,
       {264, 200, 72},
       {{"epilogue", "silu"}},
       "BM=128 BN=64 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"aligned_with_an_empty_slice",
       "nn",
       f16,
       f16,
       {60, 61, 261},
       {{"alpha", "-0.5"}},
       "BM=64 BN=32 BK=64 GROUPS=1 PINGPONG=0 STAGES=3 RESIDENT=0 WALK=0 SPLIT=4 FOLD=0 ALIGN=1 "
       "DYNAMIC=0 STREAM_K=0"},
      {"swapped_the_last_slice_adds",
       "nt",
       bf16,
       f32,
       {13, 200, 264},
       {{"epilogue", "bias"}},
       "BM=16 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=4 RESIDENT=0 WALK=0 SPLIT=4 FOLD=1 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"pingpong_with_packed_elements",
       "nt",
       bf16,
       bf16,
       {330, 200, 200},
       {{"epilogue", "bias,residual,silu"}},
       "BM=64 BN=80 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"three_take_turns_of_two_products",
       "tn",
       f16,
       f32,
       {520, 136, 136},
       {{"epilogue", "residual"}},
       "BM=128 BN=48 BK=64 GROUPS=3 PINGPONG=1 STAGES=2 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"swapped_across_k_resident",
       "tn",
       f16,
       f16,
       {104, 200, 200},
       {{"epilogue", "residual,silu"}},
       "BM=40 BN=128 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"swapped_in_two_pieces",
       "nt",
       f16,
       f16,
       {152, 200, 136},
       {{"epilogue", "bias,residual,gelu"}, {"beta", "2"}},
       "BM=80 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=3 RESIDENT=0 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"swapped_in_three_pieces_resident",
       "nn",
       bf16,
       bf16,
       {296, 200, 200},
       {{"epilogue", "residual,silu"}},
       "BM=144 BN=64 BK=64 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"gates_beside_their_ups",
       "nt",
       f16,
       f16,
       {130, 100, 200},
       {{"epilogue", "bias,swiglu"}, {"alpha", "-0.5"}},
       "BM=128 BN=64 BK=64 GROUPS=2 PINGPONG=0 STAGES=2 RESIDENT=0 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"packed_gates",
       "nt",
       f16,
       f16,
       {130, 104, 200},
       {{"epilogue", "bias,geglu"}},
       "BM=128 BN=96 BK=64 GROUPS=2 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"gates_of_80_columns",
       "nt",
       f16,
       f16,
       {130, 104, 200},
       {{"epilogue", "swiglu"}},
       "BM=64 BN=80 BK=64 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=0 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"gates_in_turns",
       "nt",
       bf16,
       bf16,
       {330, 104, 200},
       {{"epilogue", "swiglu"}},
       "BM=64 BN=96 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"gates_swapped_the_last_slice_adds",
       "tt",
       bf16,
       f32,
       {16, 101, 264},
       {{"epilogue", "geglu"}},
       "BM=16 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=4 RESIDENT=0 WALK=0 SPLIT=4 FOLD=1 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
      {"tiles_from_a_counter",
       "nt",
       f16,
       f16,
       {330, 200, 136},
       {{"epilogue", "bias,silu"}},
       "BM=128 BN=80 BK=64 GROUPS=1 PINGPONG=0 STAGES=2 RESIDENT=1 WALK=1 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=1 STREAM_K=0"},
      {"swapped_tiles_from_a_counter",
       "nt",
       bf16,
       bf16,
       {104, 200, 200},
       {},
       "BM=40 BN=64 BK=64 GROUPS=1 PINGPONG=0 STAGES=3 RESIDENT=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 "
       "DYNAMIC=1 STREAM_K=0"},
      {"swapped_in_pieces_with_slices",
       "tn",
       bf16,
       f32,
       {216, 120, 520},
       {{"epilogue", "bias"}},
       "BM=112 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=2 RESIDENT=0 WALK=0 SPLIT=3 FOLD=1 ALIGN=0 "
       "DYNAMIC=0 STREAM_K=0"},
  };
}

/// Returns a Hopper of few compute units, on which few tiles are more than run at once.
DeviceInfo small_hopper(int units = 2) {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = units;
  hopper.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return hopper;
}

void expect_right(const Problem& problem, const std::string& config, int units = 2) {
  const Operation& operation = built_in(problem.op);
  const auto parsed = operation.space(problem, small_hopper(units)).parse(config);
  ASSERT_TRUE(parsed) << parsed.failure().message;
  auto plan = operation.plan(problem, small_hopper(units), *parsed);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();  // for NVRTC
  test::expect_right(operation, problem, plan, config, 1, test::device("hip-host:0"));
}

class GemmTma : public ::testing::TestWithParam<Case> {};

TEST_P(GemmTma, IsRight) {
  const Case& c = GetParam();
  auto attributes = c.epilogue;
  if (c.layout != std::string("nn")) attributes.insert(attributes.begin(), {"layout", c.layout});
  const auto& [m, n, k] = c.extents;
  const Problem problem = test::gemm_problem(m, n, k, c.in, c.out, attributes);
  expect_right(problem, fmt::format("tma CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 {}", c.config));
}

INSTANTIATE_TEST_SUITE_P(Ways, GemmTma, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// Returns a problem of groups; boxes of operands reach over the ends of groups.
Problem groups(const char* form, const char* layout, DType out) {
  Problem problem{"grouped_gemm", DType::bf16, out, {}, {}};
  if (form != std::string("contiguous")) problem.attributes.emplace_back("form", form);
  if (layout != std::string("nt")) problem.attributes.emplace_back("layout", layout);
  problem.attributes.emplace_back("routing", "skewed");
  problem.dims = {{"groups", 5}, {"m", 200}, {"n", 104}, {"k", 128}};
  return problem;
}

TEST(GemmTmaOfGroups, ContiguousOnesInTurns) {
  expect_right(groups("contiguous", "nt", DType::bf16),
               "tma BM=64 BN=80 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

TEST(GemmTmaOfGroups, MaskedOnesAcrossK) {
  expect_right(groups("masked", "nn", DType::f32),
               "tma BM=64 BN=96 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=0 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

TEST(GemmTmaOfGroups, FewRows) {
  expect_right(groups("masked", "nt", DType::bf16),
               "tma BM=16 BN=64 BK=64 GROUPS=1 PINGPONG=0 STAGES=4 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

// Groups of 88, 44, 29, 22 and 18 rows: some warpgroups and products of their tiles have no rows.
TEST(GemmTmaOfGroups, PartsWithoutRowsAreSkipped) {
  for (const char* tile : {"BM=128 BN=80 BK=64 GROUPS=2", "BM=192 BN=48 BK=64 GROUPS=1"}) {
    expect_right(groups("contiguous", "nt", DType::bf16),
                 fmt::format("tma {} PINGPONG=0 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=1 "
                             "SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=1 STREAM_K=0",
                             tile));
  }
}

/// The same with gates, whose boxes of pairs reach into the ups, and those of the last group past
/// the end of the map.
Problem gated_groups(const char* form, std::int64_t n, DType out) {
  Problem problem = groups(form, "nt", out);
  problem.attributes.insert(problem.attributes.end() - 1, {"epilogue", "swiglu"});
  problem.extent("n") = n;
  return problem;
}

TEST(GemmTmaOfGroups, GatesInTheRegistersOfTheirSums) {
  expect_right(gated_groups("contiguous", 104, DType::bf16),
               "tma BM=64 BN=96 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

TEST(GemmTmaOfGroups, GatesOfMaskedGroupsThroughSharedMemory) {
  expect_right(gated_groups("masked", 50, DType::f32),
               "tma BM=16 BN=64 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=0 SWIZZLE=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

/// Returns a batch of three products; boxes of operands reach over the ends of its matrices.
Problem batch(const char* layout, std::vector<std::pair<std::string, std::string>> attributes) {
  if (layout != std::string("nn")) attributes.insert(attributes.begin(), {"layout", layout});
  Problem problem = test::gemm_problem(136, 104, 128, DType::f16, DType::f16, attributes);
  problem.dims.emplace_back("batch", 3);
  return problem;
}

TEST(GemmTmaOfBatches, InTurns) {
  expect_right(batch("nt", {{"epilogue", "residual"}}),
               "tma BM=64 BN=80 BK=64 GROUPS=2 PINGPONG=1 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

TEST(GemmTmaOfBatches, AcrossKWithACommonB) {
  expect_right(batch("tn", {{"shared", "b"}}),
               "tma BM=64 BN=96 BK=128 GROUPS=1 PINGPONG=0 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=0 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

TEST(GemmTmaOfBatches, LinesApart) {
  expect_right(batch("nn", {{"a_batch_stride", "17536"},
                            {"b_batch_stride", "13416"},
                            {"c_batch_stride", "14148"}}),
               "tma BM=128 BN=48 BK=64 GROUPS=2 PINGPONG=0 STAGES=4 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0");
}

/// A number of tiles that five workgroups divide by K steps.
struct Streamed {
  const char* name;
  const char* layout;
  DType out;
  std::array<std::int64_t, 3> extents;
  std::vector<std::pair<std::string, std::string>> attributes;
  const char* tile;
};

void PrintTo(const Streamed& c, std::ostream* to) {
  *to << c.name;
}

class GemmTmaStreamK : public ::testing::TestWithParam<Streamed> {};

TEST_P(GemmTmaStreamK, IsRight) {
  const Streamed& c = GetParam();
  auto attributes = c.attributes;
  if (c.layout != std::string("nn")) attributes.insert(attributes.begin(), {"layout", c.layout});
  const auto& [m, n, k] = c.extents;
  expect_right(
      test::gemm_problem(m, n, k, DType::bf16, c.out, attributes),
      fmt::format("tma {} PINGPONG=0 CLUSTER_M=1 CLUSTER_N=1 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 "
                  "DYNAMIC=0 STREAM_K=1",
                  c.tile),
      5);
}

INSTANTIATE_TEST_SUITE_P(
    Ways, GemmTmaStreamK,
    ::testing::ValuesIn(std::vector<Streamed>{
        // 12 tiles of 3 steps: 7 are divided, and each workgroup has one of the others.
        {"two_rounds",
         "nt",
         DType::bf16,
         {250, 340, 136},
         {{"epilogue", "bias,residual,gelu"}},
         "BM=64 BN=128 BK=64 GROUPS=1 STAGES=3 RESIDENT=1 ALIGN=0"},
        // Two tiles of 17 steps: a workgroup in the middle has neither's begin nor end.
        {"fewer_tiles_than_workgroups",
         "nn",
         DType::f32,
         {120, 136, 1032},
         {{"beta", "2"}},
         "BM=128 BN=80 BK=64 GROUPS=2 STAGES=2 RESIDENT=1 ALIGN=0"},
        {"one_tile_of_several_workgroups",
         "tn",
         DType::bf16,
         {64, 120, 1290},
         {},
         "BM=64 BN=128 BK=64 GROUPS=1 STAGES=4 RESIDENT=1 ALIGN=0"},
        // 8 tiles of one step for 5 workgroups: nobody has two parts.
        {"one_step",
         "nt",
         DType::bf16,
         {120, 400, 64},
         {},
         "BM=64 BN=112 BK=64 GROUPS=1 STAGES=2 RESIDENT=1 ALIGN=0"},
        {"rows_are_aligned_first",
         "nn",
         DType::bf16,
         {130, 141, 331},
         {},
         "BM=64 BN=96 BK=64 GROUPS=1 STAGES=2 RESIDENT=2 ALIGN=1"},
        {"swapped",
         "nt",
         DType::bf16,
         {100, 200, 392},
         {{"epilogue", "bias"}},
         "BM=40 BN=128 BK=128 GROUPS=2 STAGES=2 RESIDENT=1 ALIGN=0"},
        {"gates",
         "nt",
         DType::bf16,
         {200, 100, 264},
         {{"epilogue", "swiglu"}},
         "BM=64 BN=96 BK=64 GROUPS=1 STAGES=2 RESIDENT=1 ALIGN=0"},
    }),
    [](const auto& instance) { return std::string(instance.param.name); });

TEST(GemmTmaOfBatches, StreamK) {
  expect_right(batch("nt", {{"epilogue", "residual"}}),
               "tma BM=128 BN=80 BK=64 GROUPS=2 PINGPONG=0 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 "
               "RESIDENT=1 SWIZZLE=4 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=1",
               5);
}

}  // namespace
}  // namespace greta::test::gemm_tma_test
