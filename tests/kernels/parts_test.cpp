// Protects: the declared parts of fused operations are valid problems of other operations, in the
// types in which one hands its result to the next; and chains have alternatives, of which the
// default is possible for every problem.
#include <gtest/gtest.h>

#include "kernels/chains/chains.hpp"
#include "kernels/model/problem_rules.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::parts_test {
namespace {

std::vector<std::string> keys(const Problem& problem) {
  std::vector<std::string> list;
  for (const Problem& part : built_in(problem.op).parts_of(problem)) list.push_back(part.key());
  return list;
}

std::vector<std::string> keys(const char* problem) {
  return keys(Catalog::built_in().read(problem).value());
}

using Keys = std::vector<std::string>;

TEST(Parts, OfEachTypicalProblemAreValid) {
  int fused = 0;
  for (const Operation& operation : Catalog::built_in()) {
    for (const DTypes& types : operation.dtypes) {
      for (std::size_t i = 0; i < operation.sizes.size(); ++i) {
        const Problem problem = typical_problem(operation, types, i);
        if (!check_problem(operation, problem)) continue;
        for (const Problem& part : operation.parts_of(problem)) {
          EXPECT_NE(part, problem);
          const Operation* const own = Catalog::built_in().find(part.op);
          ASSERT_NE(own, nullptr) << part.key();
          const auto good = check_problem(*own, part);
          EXPECT_TRUE(good) << problem.key() << ": " << part.key() << ": "
                            << (good ? "" : good.failure().message);
          ++fused;
        }
      }
    }
  }
  EXPECT_GT(fused, 20);
}

TEST(Parts, OfAGateAreAProductOfBothAndSiluMul) {
  EXPECT_EQ(keys("gemm dtype=f16 out=f16 layout=nt epilogue=bias,swiglu m=64 n=40 k=32"),
            (Keys{"gemm dtype=f16 out=f16 layout=nt epilogue=bias m=64 n=80 k=32",
                  "silu_mul dtype=f16 out=f16 layout=packed rows=64 cols=40"}));
  EXPECT_EQ(keys("gemm dtype=f16 out=f16 layout=nt epilogue=swiglu prologue=rmsnorm epsilon=1e-06 "
                 "m=1 n=40 k=32"),
            (Keys{"rmsnorm dtype=f16 out=f16 epsilon=1e-06 rows=1 cols=32",
                  "gemm dtype=f16 out=f16 layout=nt m=1 n=80 k=32",
                  "silu_mul dtype=f16 out=f16 layout=packed rows=1 cols=40"}));
}

TEST(Parts, OfEpiloguesAreWhatOperationsExistFor) {
  EXPECT_EQ(keys("gemm dtype=f32 out=f32 epilogue=residual,gelu m=9 n=40 k=32"),
            (Keys{"gemm dtype=f32 out=f32 m=9 n=40 k=32", "add dtype=f32 out=f32 rows=9 cols=40",
                  "gelu dtype=f32 out=f32 rows=9 cols=40"}));
  EXPECT_EQ(keys("gemm dtype=f32 out=f32 epilogue=bias,silu m=9 n=40 k=32"), Keys{});
  EXPECT_EQ(keys("gemm dtype=f32 out=f32 m=9 n=40 k=32"), Keys{});
  EXPECT_EQ(keys("add_rmsnorm dtype=f32 out=f16 affine=none rows=3 cols=40"),
            (Keys{"add dtype=f32 out=f16 rows=3 cols=40",
                  "rmsnorm dtype=f16 out=f16 affine=none rows=3 cols=40"}));
}

TEST(Parts, OfAnAppendAreOneForEachSequence) {
  EXPECT_EQ(
      keys("rope_append dtype=f16 out=f16 style=half batch=2 tokens=3 heads=4 kv_heads=2 "
           "dim=64 positions=128 capacity=256"),
      (Keys{"rope dtype=f16 out=f16 style=half tokens=6 heads=4 dim=64 positions=128",
            "rope dtype=f16 out=f16 style=half place=in tokens=6 heads=2 dim=64 positions=128",
            "kv_update dtype=f16 out=f16 tokens=3 kv_heads=2 dim=64 capacity=256",
            "kv_update dtype=f16 out=f16 tokens=3 kv_heads=2 dim=64 capacity=256"}));
}

TEST(Parts, OfAQuantisedProductAreAProductAndWhatFollows) {
  EXPECT_EQ(keys("quantized_gemm dtype=f16 out=f16 weights=q8_0 epilogue=swiglu m=2 n=40 k=32"),
            (Keys{"quantized_gemm dtype=f16 out=f16 weights=q8_0 m=2 n=80 k=32",
                  "silu_mul dtype=f16 out=f16 layout=packed rows=2 cols=40"}));
  EXPECT_EQ(keys("quantized_gemm dtype=bf16 out=f32 epilogue=residual m=2 n=40 k=128"),
            (Keys{"quantized_gemm dtype=bf16 out=f32 m=2 n=40 k=128",
                  "add dtype=f32 out=f32 rows=2 cols=40"}));
  EXPECT_EQ(keys("quantized_gemm dtype=f16 out=f16 epilogue=bias m=2 n=40 k=128"), Keys{});
  EXPECT_EQ(keys("quantized_gemm dtype=f16 out=f16 epilogue=bias prologue=rmsnorm epsilon=0.25 m=2 "
                 "n=40 k=128"),
            (Keys{"rmsnorm dtype=f16 out=f16 epsilon=0.25 rows=2 cols=128",
                  "quantized_gemm dtype=f16 out=f16 epilogue=bias m=2 n=40 k=128"}));
}

TEST(Parts, OfAQuantisedGroupedProductAreNumbersAndAGroupedProduct) {
  EXPECT_EQ(keys("quantized_grouped_gemm dtype=f16 out=f32 form=masked weights=q4_k epilogue=geglu "
                 "groups=3 m=5 n=40 k=256"),
            (Keys{"dequantize dtype=f16 out=f16 weights=q4_k rows=240 cols=256",
                  "grouped_gemm dtype=f16 out=f32 form=masked epilogue=geglu groups=3 m=5 n=40 "
                  "k=256"}));
  EXPECT_EQ(keys("quantized_grouped_gemm dtype=f16 out=f16 packing=panels groups=3 m=5 n=48 k=256"),
            (Keys{"dequantize dtype=f16 out=f16 packing=panels rows=144 cols=256",
                  "grouped_gemm dtype=f16 out=f16 groups=3 m=5 n=48 k=256"}));
}

// Quantised experts are multiplied as they are by default; others can't be.
TEST(Chains, OfQuantisedExpertsMultiplyThemAsTheyAre) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const MatrixFormat q8{WeightFormat::q8_0};
  for (const std::int64_t rows : {1, 64, 65, 4096}) {
    const Problem plain = expert_ffn_chain(DType::f16, {rows, 8, 2, 128, 96}),
                  stored = expert_ffn_chain(DType::f16, {rows, 8, 2, 128, 96, q8, q8});
    EXPECT_EQ(chains().at("expert_ffn").default_config(stored, hopper).variant,
              rows <= most_expert_rows ? "fused" : "quantised");
    EXPECT_FALSE(chains().valid(plain, hopper, {"quantised", {}}));
    for (const char* alternative : {"quantised", "gated", "parts"}) {
      EXPECT_TRUE(chains().valid(stored, hopper, {alternative, {}})) << alternative;
    }
  }
}

TEST(Parts, OfAScaledGroupedProductAreAProductAndTheGates) {
  EXPECT_EQ(keys("scaled_grouped_gemm dtype=bf16 out=bf16 form=masked scales=block epilogue=swiglu "
                 "groups=3 m=5 n=40 k=256"),
            (Keys{"scaled_grouped_gemm dtype=bf16 out=bf16 form=masked scales=block groups=3 m=5 "
                  "n=80 k=256",
                  "silu_mul dtype=bf16 out=bf16 layout=packed rows=15 cols=40"}));
}

// Experts of fp8 are multiplied as they are, few rows without being quantised; others can't be.
TEST(Chains, OfScaledExpertsMultiplyThemAsTheyAre) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const MatrixFormat rows8{.scaled = ScaledFormat{}},
      blocks8{.scaled = ScaledFormat{.blocks = true}};
  for (const std::int64_t rows : {1, 8, 9, 65, 4096}) {
    const Problem plain = expert_ffn_chain(DType::bf16, {rows, 8, 2, 128, 128});
    EXPECT_FALSE(chains().valid(plain, hopper, {"scaled", {}}));
    for (const MatrixFormat& format : {rows8, blocks8}) {
      const Problem scaled = expert_ffn_chain(DType::bf16, {rows, 8, 2, 128, 128, format, format});
      EXPECT_EQ(chains().at("expert_ffn").default_config(scaled, hopper).variant,
                rows <= most_fused_rows ? "fused" : "scaled");
      for (const char* alternative : {"fused", "scaled"}) {
        EXPECT_TRUE(chains().valid(scaled, hopper, {alternative, {}})) << alternative;
      }
      for (const char* alternative : {"quantised", "gated", "parts"}) {
        EXPECT_FALSE(chains().valid(scaled, hopper, {alternative, {}})) << alternative;
      }
    }
  }
}

// Quantised weights have epilogues, in few rows by default, and by choice a prologue unless columns
// are reordered; other weights have neither.
TEST(Chains, OfQuantisedWeightsHaveEpilogues) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const auto variant = [&](const Problem& chain) {
    return chains().at(chain.op).default_config(chain, hopper).variant;
  };
  using enum ChainWeights;
  EXPECT_EQ(variant(gate_up_chain(DType::f16, 1, 344, 128, quantised)), "gated");
  EXPECT_EQ(variant(gate_up_chain(DType::f16, 9, 344, 128, quantised)), "parts");
  EXPECT_EQ(variant(gate_up_chain(DType::f16, 1, 344, 128, others)), "parts");
  EXPECT_EQ(variant(residual_norm_chain(DType::f16, 1, 128, 344, quantised)), "epilogue");
  EXPECT_EQ(variant(residual_norm_chain(DType::f16, 1, 128, 344, others)), "add_norm");
  const Problem several = gate_up_chain(DType::f16, 1, 344, 128, others);
  EXPECT_FALSE(chains().valid(several, hopper, {"gated", {}}));
  const Problem one = gate_up_chain(DType::f16, 1, 344, 128, quantised);
  EXPECT_TRUE(chains().valid(one, hopper, {"fused", {}}));
  EXPECT_FALSE(
      chains().valid(gate_up_chain(DType::f16, 9, 344, 128, quantised), hopper, {"fused", {}}));
  const Problem reordered = gate_up_chain(DType::f16, 1, 344, 128, ordered);
  EXPECT_EQ(variant(reordered), "gated");
  EXPECT_FALSE(chains().valid(reordered, hopper, {"fused", {}}));
  EXPECT_EQ(variant(qkv_chain(DType::f16, 1, 128, 64, 128, quantised)), "parts");
  EXPECT_TRUE(
      chains().valid(qkv_chain(DType::f16, 1, 128, 64, 128, quantised), hopper, {"fused", {}}));
}

TEST(Chains, HaveAnAlternativeForEveryNumberOfRows) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  for (const std::int64_t rows : {1, 8, 9, 512}) {
    for (const Problem& chain :
         {gate_up_chain(DType::f16, rows, 344, 128), qkv_chain(DType::f16, rows, 128, 64, 128),
          residual_norm_chain(DType::f16, rows, 128, 344),
          expert_ffn_chain(DType::f16, {rows, 8, 2, 128, 344}),
          rope_kv_chain(DType::f16, {1, rows, 4, 2, 32, 1024}),
          norm_quantize_chain(DType::f16, {rows, 128}),
          add_norm_quantize_chain(DType::bf16, {rows, 128, {ByteFormat::e4m3, true}}),
          norm_quantize_chain(DType::f16, {rows, 128, {.given_input = true}}),
          silu_quantize_chain(DType::f16, {rows, 344, {ByteFormat::e5m2, false}})}) {
      const Operation& operation = chains().at(chain.op);
      ASSERT_TRUE(check_problem(operation, chain)) << chain.key();
      const Config config = operation.default_config(chain, hopper);
      EXPECT_TRUE(chains().valid(chain, hopper, config)) << chain.key();
      const bool fuses = chain.op != "residual_norm";
      EXPECT_EQ(config.variant == "fused", fuses && rows <= most_fused_rows) << chain.key();
      EXPECT_EQ(chains().read(chain.key()).value(), chain);
    }
  }
  EXPECT_FALSE(chains().valid(gate_up_chain(DType::f16, 9, 344, 128), hopper, {"normed", {}}));
  EXPECT_TRUE(chains().valid(gate_up_chain(DType::f16, 9, 344, 128), hopper, {"gated", {}}));
}

// An operation of a user may have a chain's name; it is the user's then.
TEST(Chains, GiveWayToOperationsOfTheirNames) {
  Operation own = built_in("add");
  own.name = "qkv";
  const Catalog all = with_chains(Catalog({own}));
  EXPECT_EQ(all.size(), chains().size());
  EXPECT_EQ(all.at("qkv").dimensions.size(), own.dimensions.size());
}

}  // namespace
}  // namespace greta::test::parts_test
