#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/kernels/hopper_runner.hpp"
#include "tests/kernels/planted_fault.hpp"

// Protects: `tma` of quantized_gemm whose warpgroups have shares of K in a workgroup, box by box in
// turn: as many boxes for each, one more for the first, none for the second, a last box that is not
// whole, rings that go round, one and two warpgroups of a share, weights of 4 and 8 bits, panels,
// and slices of clusters beside them. What has no shares is refused.
namespace greta::test::quantized_gemm_shares_test {
namespace {

struct Case {
  const char *problem, *config;
};

Problem problem_of(const char* text) {
  return catalog().read(fmt::format("quantized_gemm {}", text)).value();
}

TEST(QuantizedGemmShares, AreRight) {
  const Case cases[] = {
      {"dtype=f16 out=f16 m=70 n=200 k=2048", "BM=64 BN=64 GROUPS=1 STAGES=4"},
      {"dtype=f16 out=f32 zeros=groups m=33 n=70 k=1408", "BM=32 BN=128 GROUPS=2 STAGES=6"},
      {"dtype=bf16 out=bf16 group=\"32\" zeros=groups m=20 n=66 k=1952",
       "BM=16 BN=64 GROUPS=1 STAGES=4"},
      {"dtype=f16 out=f16 group=\"64\" epilogue=residual m=40 n=61 k=576",
       "BM=32 BN=64 GROUPS=1 STAGES=4"},
      {"dtype=bf16 out=f32 weights=int8 epilogue=bias m=17 n=130 k=1152",
       "BM=32 BN=64 GROUPS=1 STAGES=4"},
      {"dtype=f16 out=f32 weights=int8 group=\"32\" m=50 n=65 k=1376",
       "BM=48 BN=128 GROUPS=2 STAGES=4"},
      {"dtype=bf16 out=bf16 weights=mxfp4 m=30 n=90 k=800", "BM=16 BN=64 GROUPS=1 STAGES=4"},
      {"dtype=f16 out=f16 packing=panels m=40 n=96 k=1024", "BM=32 BN=64 GROUPS=1 STAGES=6"},
      {"dtype=f16 out=f16 m=16 n=64 k=256", "BM=16 BN=64 GROUPS=1 STAGES=4"}};
  std::uint64_t seed = 1;
  for (const Case& c : cases) {
    const Problem problem = problem_of(c.problem);
    const auto config =
        built_in(problem.op)
            .space(problem, hopper_of(2))
            .parse(fmt::format("tma {} SPLIT=1 RESIDENT=0 ROUND=0 SHARES=2", c.config));
    ASSERT_TRUE(config) << config.failure().message;
    expect_right_of_hopper(problem, *config, kernels::InputStyle::plain, ++seed);
    expect_right_of_hopper(problem, *config, kernels::InputStyle::adversarial, ++seed);
  }
}

TEST(QuantizedGemmShares, AreRightInClusters) {
  const Case cases[] = {
      {"dtype=f16 out=f16 m=40 n=130 k=2176", "BM=32 BN=64 GROUPS=1 STAGES=4 SPLIT=2"},
      {"dtype=f16 out=f16 m=20 n=64 k=640", "BM=16 BN=64 GROUPS=1 STAGES=4 SPLIT=4"},
      {"dtype=f16 out=f32 m=20 n=64 k=1280", "BM=16 BN=64 GROUPS=1 STAGES=6 SPLIT=4"},
      {"dtype=bf16 out=bf16 weights=int8 epilogue=residual m=20 n=64 k=640",
       "BM=16 BN=64 GROUPS=1 STAGES=4 SPLIT=4"}};
  for (const Case& c : cases) {
    const std::string config = fmt::format("tma {} RESIDENT=0 ROUND=0 SHARES=2", c.config);
    EXPECT_EQ(fault_of(problem_of(c.problem), config), "");
  }
}

TEST(QuantizedGemmShares, AreRefused) {
  const Case cases[] = {
      {"dtype=f16 out=f16 m=70 n=200 k=2048", "BM=64 BN=64 GROUPS=1 STAGES=3 RESIDENT=0 ROUND=0"},
      {"dtype=f16 out=f16 m=70 n=200 k=2048", "BM=64 BN=64 GROUPS=1 STAGES=5 RESIDENT=0 ROUND=0"},
      {"dtype=f16 out=f16 m=70 n=200 k=2048", "BM=32 BN=192 GROUPS=3 STAGES=4 RESIDENT=0 ROUND=0"},
      {"dtype=f16 out=f16 m=70 n=200 k=2048", "BM=64 BN=64 GROUPS=1 STAGES=4 RESIDENT=1 ROUND=0"},
      {"dtype=f16 out=f16 math=rounded_weights m=70 n=200 k=2048",
       "BM=64 BN=64 GROUPS=1 STAGES=4 RESIDENT=0 ROUND=1"},
      {"dtype=f16 out=f16 weights=q4_0 m=70 n=200 k=2048",
       "BM=64 BN=64 GROUPS=1 STAGES=4 RESIDENT=0 ROUND=0"},
      {"dtype=f16 out=f16 epilogue=swiglu m=70 n=200 k=2048",
       "BM=64 BN=64 GROUPS=1 STAGES=4 RESIDENT=0 ROUND=0"}};
  for (const Case& c : cases) {
    const Problem problem = problem_of(c.problem);
    const auto config = built_in(problem.op)
                            .space(problem, hopper_of(2))
                            .parse(fmt::format("tma {} SPLIT=1 SHARES=2", c.config));
    ASSERT_FALSE(config) << c.config;
    EXPECT_NE(config.failure().message.find("SHARES"), std::string::npos)
        << config.failure().message;
  }
}

}  // namespace
}  // namespace greta::test::quantized_gemm_shares_test
