#include <fmt/format.h>

#include <string>
#include <tuple>

#include "kernels/prior/predicted_config.hpp"
#include "tests/kernels/hopper_runner.hpp"

// Protects: variant `cluster` of quantized_gemm: each format, type, epilogue and kind of zero
// point, rows and columns past the ends, shares that have no unit or some of another one's, several
// batches of a wave, two tiles of a wave, and slices of clusters. Groups of 64 and 32, in each
// number of sets of columns and each length of pieces. What may run on GPUs without clusters, or of
// more rows, that clusters fill an H200, and that they are the answer of short groups there.
namespace greta::test::quantized_gemm_cluster_test {
namespace {

Problem problem_of(const std::string& key) {
  return catalog().read(fmt::format("quantized_gemm {}", key)).value();
}

Config config_of(const Problem& problem, const char* parameters) {
  const auto config = built_in("quantized_gemm")
                          .space(problem, hopper_of(2))
                          .parse(fmt::format("cluster {}", parameters));
  EXPECT_TRUE(config) << config.failure().message;
  return *config;
}

/// Expects right results of a configuration, also of adversarial inputs.
void expect_right(const char* key, const char* parameters) {
  const Problem problem = problem_of(key);
  const Config config = config_of(problem, fmt::format("{} SPLIT=1", parameters).c_str());
  expect_right_of_hopper(problem, config, kernels::InputStyle::plain, 1);
  for (const std::uint64_t seed : {2, 3, 4}) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, seed);
  }
}

// Workgroups that add one tile each, several, and those of waves that share slices.
TEST(QuantizedGemmCluster, SlicesAreRight) {
  for (const auto& [key, parameters] : {
           std::pair{"dtype=f16 out=f16 m=16 n=70 k=1280",
                     "WAVES=4 SHARES=1 TN=1 UNROLL=2 SPLIT=4"},
           {"dtype=bf16 out=f32 zeros=groups m=7 n=133 k=640",
            "WAVES=8 SHARES=2 TN=2 UNROLL=1 SPLIT=2"},
           {"dtype=f16 out=f32 weights=int8 group=\"32\" epilogue=bias m=3 n=140 k=1152",
            "WAVES=8 SHARES=1 TN=1 UNROLL=1 SPLIT=8"},
       }) {
    const Problem problem = problem_of(key);
    const Config config = config_of(problem, parameters);
    expect_right_of_hopper(problem, config, kernels::InputStyle::plain, 1);
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, 2);
  }
}

TEST(QuantizedGemmCluster, IsRight) {
  for (const auto& [key, parameters] : {
           std::pair{"dtype=f16 out=f16 m=16 n=70 k=1280", "WAVES=4 SHARES=2 TN=1 UNROLL=2"},
           {"dtype=f16 out=f32 m=11 n=100 k=640", "WAVES=4 SHARES=1 TN=2 UNROLL=4"},
           {"dtype=bf16 out=bf16 m=1 n=33 k=1152", "WAVES=8 SHARES=4 TN=1 UNROLL=2"},
           {"dtype=f16 out=f32 weights=int8 epilogue=bias m=3 n=40 k=896",
            "WAVES=2 SHARES=2 TN=1 UNROLL=1"},
           {"dtype=f16 out=f16 epilogue=swiglu m=9 n=41 k=512", "WAVES=4 SHARES=2 TN=1 UNROLL=1"},
           {"dtype=bf16 out=f32 zeros=groups m=16 n=50 k=384", "WAVES=2 SHARES=1 TN=1 UNROLL=1"},
           {"dtype=f16 out=f32 weights=int8 zeros=groups m=8 n=40 k=512",
            "WAVES=2 SHARES=1 TN=2 UNROLL=2"},
           {"dtype=f16 out=f16 epilogue=residual m=2 n=17 k=512", "WAVES=4 SHARES=4 TN=1 UNROLL=1"},
       }) {
    expect_right(key, parameters);
  }
}

/// A span of four pieces has 1, 2 or 4 groups, which take one or two eights of columns.
TEST(QuantizedGemmCluster, IsRightOfShortGroups) {
  for (const auto& [key, parameters] : {
           // int4, pieces of 32: two groups
           std::pair{"dtype=f16 out=f32 group=\"64\" m=3 n=70 k=640",
                     "WAVES=4 SHARES=2 TN=1 UNROLL=2"},
           {"dtype=bf16 out=bf16 group=\"64\" zeros=groups m=7 n=33 k=384",
            "WAVES=2 SHARES=1 TN=2 UNROLL=1"},
           // four groups
           {"dtype=f16 out=f16 group=\"32\" zeros=groups m=1 n=50 k=1152",
            "WAVES=8 SHARES=4 TN=1 UNROLL=2"},
           {"dtype=bf16 out=f32 group=\"32\" epilogue=swiglu m=4 n=41 k=256",
            "WAVES=4 SHARES=2 TN=1 UNROLL=1"},
           // pieces of 16
           {"dtype=bf16 out=f32 group=\"32\" zeros=groups m=8 n=100 k=640",
            "WAVES=4 SHARES=1 TN=2 UNROLL=4"},
           {"dtype=f16 out=f16 group=\"64\" zeros=groups epilogue=residual m=13 n=40 k=512",
            "WAVES=4 SHARES=4 TN=1 UNROLL=1"},
           // pieces of 8
           {"dtype=f16 out=f32 group=\"32\" m=16 n=35 k=384", "WAVES=2 SHARES=2 TN=1 UNROLL=1"},
           {"dtype=f16 out=f32 group=\"32\" zeros=groups m=9 n=64 k=128",
            "WAVES=4 SHARES=1 TN=1 UNROLL=1"},
       }) {
    expect_right(key, parameters);
  }
}

TEST(QuantizedGemmCluster, IsRightOfShortGroupsOfBytes) {
  for (const auto& [key, parameters] : {
           // pieces of 16: one group, then two
           std::pair{"dtype=f16 out=f32 weights=int8 group=\"64\" epilogue=bias m=4 n=40 k=896",
                     "WAVES=2 SHARES=2 TN=1 UNROLL=1"},
           {"dtype=bf16 out=bf16 weights=int8 group=\"64\" zeros=groups m=16 n=50 k=384",
            "WAVES=4 SHARES=1 TN=1 UNROLL=2"},
           {"dtype=bf16 out=f32 weights=int8 group=\"32\" m=2 n=33 k=640",
            "WAVES=4 SHARES=2 TN=1 UNROLL=2"},
           {"dtype=f16 out=f16 weights=int8 group=\"32\" zeros=groups m=8 n=70 k=512",
            "WAVES=2 SHARES=1 TN=2 UNROLL=1"},
           // pieces of 8
           {"dtype=f16 out=f32 weights=int8 group=\"32\" zeros=groups m=11 n=40 k=512",
            "WAVES=4 SHARES=2 TN=1 UNROLL=1"},
       }) {
    expect_right(key, parameters);
  }
}

TEST(QuantizedGemmCluster, ClustersOfTheDefaultFillAnH200) {
  DeviceInfo gpu = architecture_info("sm_90").value();
  gpu.compute_units = 132;
  const Operation& operation = built_in("quantized_gemm");
  const Problem problem = problem_of("dtype=f16 out=f16 m=16 n=4096 k=4096");
  const auto config =
      operation.space(problem, gpu).parse("cluster WAVES=16 SHARES=1 TN=1 UNROLL=4 SPLIT=8");
  ASSERT_TRUE(config) << config.failure().message;
  const auto plan = operation.plan(problem, gpu, *config);
  ASSERT_TRUE(plan) << plan.failure().message;
  EXPECT_EQ(plan->launches[0].grid, (std::array<std::uint32_t, 3>{16, 1, 8}));
}

/// Sixteen bytes at once where two eights of columns are enough.
TEST(QuantizedGemmCluster, PiecesFollowTheRows) {
  const DeviceInfo gpu = architecture_info("sm_90").value();
  const Operation& operation = built_in("quantized_gemm");
  for (const auto& [key, piece, eights] : {
           std::tuple{"group=\"64\" m=4", "32", "1"},
           {"group=\"64\" m=8", "32", "2"},
           {"group=\"64\" m=9", "16", "2"},
           {"group=\"32\" m=2", "32", "1"},
           {"group=\"32\" m=4", "32", "2"},
           {"group=\"32\" m=5", "16", "2"},
           {"group=\"32\" m=16", "8", "2"},
           {"weights=int8 group=\"64\" m=8", "16", "1"},
           {"weights=int8 group=\"32\" m=5", "16", "2"},
           {"weights=int8 group=\"32\" m=9", "8", "2"},
       }) {
    const Problem problem = problem_of(fmt::format("dtype=f16 out=f16 {} n=256 k=4096", key));
    const auto config =
        operation.space(problem, gpu).parse("cluster WAVES=8 SHARES=1 TN=1 UNROLL=2 SPLIT=8");
    ASSERT_TRUE(config) << config.failure().message;
    const auto plan = operation.plan(problem, gpu, *config);
    ASSERT_TRUE(plan) << plan.failure().message;
    const std::string& text = plan->sources[0].text;
    EXPECT_NE(text.find(fmt::format("#define PIECE {}\n", piece)), text.npos) << key;
    EXPECT_NE(text.find(fmt::format("#define EIGHTS {}\n", eights)), text.npos) << key;
  }
}

/// Where k is not whole units of 128 weights, other variants multiply short groups.
TEST(QuantizedGemmCluster, IsTheAnswerOfShortGroupsWithoutTuning) {
  DeviceInfo gpu = architecture_info("sm_90").value();
  gpu.compute_units = 132;
  for (const auto& [key, variant] : {
           std::pair{"dtype=bf16 out=bf16 group=\"32\" zeros=groups m=3 n=3008 k=3584", "cluster"},
           {"dtype=bf16 out=bf16 group=\"64\" zeros=groups m=3 n=2899 k=3584", "cluster"},
           {"dtype=f16 out=f16 weights=int8 group=\"64\" m=4 n=2048 k=5120", "cluster"},
           {"dtype=f16 out=f16 group=\"32\" m=16 n=4096 k=4096", "cluster"},
           {"dtype=bf16 out=bf16 group=\"32\" m=5 n=2880 k=2880", "tma"},
       }) {
    const auto config = kernels::predicted_config(built_in("quantized_gemm"), problem_of(key), gpu);
    ASSERT_TRUE(config) << key;
    EXPECT_EQ(config->variant, variant) << key;
  }
}

TEST(QuantizedGemmCluster, RejectsWhatTheKernelDoesNotCompute) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const DeviceInfo ampere = architecture_info("sm_80").value();
  const Operation& operation = built_in("quantized_gemm");
  const auto valid = [&](const char* key, const DeviceInfo& gpu, const char* parameters) {
    return bool(operation.space(problem_of(key), gpu).parse(fmt::format("cluster {}", parameters)));
  };
  const char* const key = "dtype=f16 out=f16 m=16 n=256 k=4096";
  const char* const split = "WAVES=8 SHARES=1 TN=1 UNROLL=1 SPLIT=2";
  EXPECT_TRUE(valid(key, hopper, split));
  EXPECT_FALSE(valid(key, ampere, split));
  EXPECT_TRUE(valid(key, ampere, "WAVES=8 SHARES=1 TN=1 UNROLL=1 SPLIT=1"));
  EXPECT_TRUE(valid("dtype=f16 out=f16 group=\"32\" m=16 n=256 k=4096", hopper, split));
  EXPECT_FALSE(valid("dtype=f16 out=f16 group=\"32\" m=16 n=256 k=4128", hopper, split));
  EXPECT_FALSE(valid("dtype=f16 out=f16 weights=mxfp4 m=16 n=256 k=4096", hopper, split));
  EXPECT_FALSE(valid("dtype=f16 out=f16 m=17 n=256 k=4096", hopper, split));
  EXPECT_FALSE(valid(key, hopper, "WAVES=8 SHARES=8 TN=1 UNROLL=1 SPLIT=2"));  // one tile
  EXPECT_FALSE(valid(key, hopper, "WAVES=8 SHARES=2 TN=2 UNROLL=4 SPLIT=8"));  // 64 of 32 units
}

}  // namespace
}  // namespace greta::test::quantized_gemm_cluster_test
