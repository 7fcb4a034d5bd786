#include <fmt/format.h>

#include "tests/kernels/hopper_runner.hpp"

// Protects: variant `cluster` of quantized_gemm, on the sm_80 that hip-host emulates, which has no
// clusters: each format, type, epilogue and kind of zero point, rows and columns past the ends,
// shares that have no unit or some of another one's, several batches of a wave, and two tiles of a
// wave. What may run on GPUs without clusters, or of more rows, and that clusters fill an H200.
namespace greta::test::quantized_gemm_cluster_test {
namespace {

Problem problem_of(const std::string& key) {
  return catalog().read(fmt::format("quantized_gemm {}", key)).value();
}

Config config_of(const Problem& problem, const char* parameters) {
  const auto config = built_in("quantized_gemm")
                          .space(problem, hopper_of_two_units())
                          .parse(fmt::format("cluster {}", parameters));
  EXPECT_TRUE(config) << config.failure().message;
  return *config;
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
    const Problem problem = problem_of(key);
    const Config config = config_of(problem, fmt::format("{} SPLIT=1", parameters).c_str());
    expect_right_of_hopper(problem, config, kernels::InputStyle::plain, 1);
    for (const std::uint64_t seed : {2, 3, 4}) {
      expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, seed);
    }
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
  EXPECT_FALSE(valid("dtype=f16 out=f16 m=17 n=256 k=4096", hopper, split));
  EXPECT_FALSE(valid(key, hopper, "WAVES=8 SHARES=8 TN=1 UNROLL=1 SPLIT=2"));  // one tile
  EXPECT_FALSE(valid(key, hopper, "WAVES=8 SHARES=2 TN=2 UNROLL=4 SPLIT=8"));  // 64 of 32 units
}

}  // namespace
}  // namespace greta::test::quantized_gemm_cluster_test
