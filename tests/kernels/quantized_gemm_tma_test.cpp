#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/model/adversarial.hpp"
#include "tests/kernels/hopper_runner.hpp"

// Protects: variant `tma` of quantized_gemm: kernels for sm_90, run on the sm_80 that hip-host
// emulates, with the tensor copies, counted barriers and warpgroup products that hip-host has
// beside it: every format, type, group and kind of zero point, rings that go round, tiles past the
// ends, k that ends in a step, blocks in boxes and loaded by lanes, one and two products of a
// warpgroup, workgroups that stay, gates, groups of rows, and weights that are rounded, only where
// the problem or the types allow it. Also the norms of `stream`: rows as sums of pieces, with each
// epilogue, on inputs of any magnitude.
namespace greta::test::quantized_gemm_tma_test {
namespace {

struct Case {
  const char* name;
  const char* weights;
  const char* group;
  const char* zeros;
  DType in, out;
  std::array<std::int64_t, 3> extents;
  const char* config;
  const char* epilogue = "none";
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  const auto f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  return {
      {"int4_around_the_rings",
       "int4",
       "128",
       "none",
       f16,
       f16,
       {70, 200, 1152},
       "BM=64 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"int4_zeros_of_two_products_resident",
       "int4",
       "64",
       "groups",
       f16,
       f32,
       {100, 301, 448},
       "BM=48 BN=128 GROUPS=1 STAGES=3 RESIDENT=1"},
      {"int4_short_groups_of_three_warpgroups",
       "int4",
       "32",
       "groups",
       bf16,
       bf16,
       {33, 400, 352},
       "BM=32 BN=192 GROUPS=3 STAGES=2 RESIDENT=1"},
      {"int4_implied_zeros_of_bf16",
       "int4",
       "64",
       "none",
       bf16,
       f32,
       {16, 65, 320},
       "BM=16 BN=64 GROUPS=1 STAGES=4 RESIDENT=0"},
      {"int8_signed",
       "int8",
       "128",
       "none",
       f16,
       f16,
       {150, 133, 640},
       "BM=80 BN=128 GROUPS=2 STAGES=3 RESIDENT=0"},
      {"int8_unsigned_of_bf16",
       "int8",
       "32",
       "groups",
       bf16,
       bf16,
       {40, 72, 416},
       "BM=32 BN=64 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"q4_0_ends_in_a_step",
       "q4_0",
       "128",
       "none",
       f16,
       f32,
       {70, 130, 352},
       "BM=48 BN=64 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"q4_0_of_bf16",
       "q4_0",
       "128",
       "none",
       bf16,
       f32,
       {33, 133, 160},
       "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"q8_0_of_f16",
       "q8_0",
       "128",
       "none",
       f16,
       f32,
       {40, 70, 288},
       "BM=48 BN=64 GROUPS=1 STAGES=3 RESIDENT=0"},
      {"q8_0_of_bf16",
       "q8_0",
       "128",
       "none",
       bf16,
       bf16,
       {20, 200, 416},
       "BM=16 BN=192 GROUPS=3 STAGES=2 RESIDENT=0"},
      {"q4_k_of_f16",
       "q4_k",
       "128",
       "none",
       f16,
       f32,
       {64, 100, 768},
       "BM=64 BN=128 GROUPS=2 STAGES=3 RESIDENT=0"},
      {"q4_k_of_bf16_resident",
       "q4_k",
       "128",
       "none",
       bf16,
       f32,
       {50, 150, 512},
       "BM=32 BN=64 GROUPS=1 STAGES=4 RESIDENT=1"},
      {"q6_k_of_f16_resident",
       "q6_k",
       "128",
       "none",
       f16,
       f32,
       {50, 150, 768},
       "BM=48 BN=64 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"q6_k_of_bf16",
       "q6_k",
       "128",
       "none",
       bf16,
       bf16,
       {17, 129, 256},
       "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"q4_0_in_boxes",
       "q4_0",
       "128",
       "none",
       f16,
       f32,
       {70, 130, 1280},
       "BM=48 BN=128 GROUPS=2 STAGES=3 RESIDENT=1"},
      {"q4_0_in_boxes_of_one_warpgroup",
       "q4_0",
       "128",
       "none",
       bf16,
       bf16,
       {33, 70, 768},
       "BM=32 BN=64 GROUPS=1 STAGES=2 RESIDENT=0"},
      {"q8_0_in_boxes",
       "q8_0",
       "128",
       "none",
       f16,
       f16,
       {40, 200, 512},
       "BM=32 BN=192 GROUPS=3 STAGES=2 RESIDENT=1"},
      {"q8_0_in_boxes_of_bf16",
       "q8_0",
       "128",
       "none",
       bf16,
       f32,
       {50, 130, 256},
       "BM=64 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"q6_k_in_boxes",
       "q6_k",
       "128",
       "none",
       f16,
       f32,
       {33, 150, 2048},
       "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=1"},
      {"q6_k_in_boxes_of_bf16",
       "q6_k",
       "128",
       "none",
       bf16,
       bf16,
       {20, 70, 2048},
       "BM=16 BN=64 GROUPS=1 STAGES=3 RESIDENT=0"},
      {"mxfp4_of_f16",
       "mxfp4",
       "128",
       "none",
       f16,
       f32,
       {70, 133, 352},
       "BM=48 BN=128 GROUPS=1 STAGES=3 RESIDENT=1"},
      {"mxfp4_of_bf16",
       "mxfp4",
       "128",
       "none",
       bf16,
       bf16,
       {33, 200, 1056},
       "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"},
      {"int4_and_a_residual",
       "int4",
       "128",
       "none",
       f16,
       f16,
       {70, 133, 256},
       "BM=48 BN=128 GROUPS=1 STAGES=3 RESIDENT=1",
       "residual"},
      {"q4_0_and_a_bias",
       "q4_0",
       "128",
       "none",
       bf16,
       f32,
       {20, 200, 128},
       "BM=16 BN=128 GROUPS=2 STAGES=2 RESIDENT=0",
       "bias"},
      {"int4_gates_of_one_product_each",
       "int4",
       "128",
       "none",
       f16,
       f16,
       {70, 100, 384},
       "BM=64 BN=128 GROUPS=2 STAGES=2 RESIDENT=1",
       "swiglu"},
      {"int8_gates_of_two_products",
       "int8",
       "32",
       "groups",
       bf16,
       bf16,
       {33, 201, 416},
       "BM=32 BN=256 GROUPS=2 STAGES=3 RESIDENT=0",
       "swiglu"},
      {"q4_k_gates",
       "q4_k",
       "128",
       "none",
       f16,
       f32,
       {50, 77, 512},
       "BM=48 BN=128 GROUPS=2 STAGES=2 RESIDENT=1",
       "swiglu"},
      {"mxfp4_gates_of_one_warpgroup",
       "mxfp4",
       "128",
       "none",
       bf16,
       f32,
       {20, 40, 352},
       "BM=16 BN=128 GROUPS=1 STAGES=2 RESIDENT=1",
       "swiglu"},
      {"one_row_of_one_group",
       "int8",
       "64",
       "groups",
       f16,
       f32,
       {1, 5, 64},
       "BM=16 BN=64 GROUPS=1 STAGES=2 RESIDENT=0"},
      {"int8_bands_of_tiles",
       "int8",
       "128",
       "groups",
       f16,
       f16,
       {300, 130, 256},
       "BM=16 BN=64 GROUPS=1 STAGES=2 RESIDENT=1"},
  };
}

Problem problem_of(const Case& c) {
  Problem problem{"quantized_gemm", c.in, c.out, {}, {}};
  const std::array<std::array<std::string, 3>, 4> attributes{{{"weights", c.weights, "int4"},
                                                              {"group", c.group, "128"},
                                                              {"zeros", c.zeros, "none"},
                                                              {"epilogue", c.epilogue, "none"}}};
  for (const auto& [name, value, usual] : attributes) {
    if (value != usual) problem.attributes.emplace_back(name, value);
  }
  problem.dims = {{"m", c.extents[0]}, {"n", c.extents[1]}, {"k", c.extents[2]}};
  return problem;
}

void expect_right(const Problem& problem, const std::string& config) {
  const auto parsed =
      built_in(problem.op).space(problem, hopper_of(2)).parse("tma SPLIT=1 SHARES=1 " + config);
  ASSERT_TRUE(parsed) << parsed.failure().message;
  expect_right_of_hopper(problem, *parsed, kernels::InputStyle::plain, 1);
  expect_right_of_hopper(problem, *parsed, kernels::InputStyle::adversarial, 2);
}

class QuantizedGemmTma : public ::testing::TestWithParam<Case> {};

TEST_P(QuantizedGemmTma, IsRight) {
  expect_right(problem_of(GetParam()), fmt::format("{} ROUND=0", GetParam().config));
}

TEST_P(QuantizedGemmTma, IsRightWithRoundedWeights) {
  Problem problem = problem_of(GetParam());
  const std::string config = fmt::format("{} ROUND=1", GetParam().config);
  const bool mxfp4 = GetParam().weights == std::string_view("mxfp4");
  const auto space = [&] { return built_in(problem.op).space(problem, hopper_of(2)); };
  if (mxfp4 && problem.dtype == DType::bf16) return expect_right(problem, config);
  const auto refused = space().parse("tma SPLIT=1 SHARES=1 " + config);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("math"), std::string::npos) << refused.failure().message;
  problem.attributes.emplace_back("math", "rounded_weights");
  if (!mxfp4) return expect_right(problem, config);
  EXPECT_FALSE(space().parse("tma SPLIT=1 SHARES=1 " + config)) << "f16 does not have its range";
}

TEST(QuantizedGemmTmaProblems, RandomOnesAreRightOnAdversarialInputs) {
  const Operation& operation = built_in("quantized_gemm");
  std::uint64_t seed = 1;
  for (const auto& [problem, config] : random_candidates(operation, hopper_of(2), "tma", 10, 1)) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
  }
}

// Groups without rows, tiles that end within a group, several tiles of a group, and rows of nobody.
TEST(QuantizedGroupedGemmTma, GroupsAreRight) {
  const std::pair<const char*, const char*> cases[] = {
      {"dtype=f16 out=f16 groups=5 m=150 n=100 k=384", "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=1"},
      {"dtype=bf16 out=bf16 group=\"64\" zeros=groups routing=skewed groups=4 m=130 n=133 k=448",
       "BM=16 BN=64 GROUPS=1 STAGES=3 RESIDENT=1"},
      {"dtype=bf16 out=f32 form=masked weights=int8 groups=3 m=70 n=72 k=256",
       "BM=48 BN=128 GROUPS=1 STAGES=2 RESIDENT=0"},
      {"dtype=f16 out=f16 weights=q4_0 epilogue=swiglu groups=4 m=90 n=50 k=160",
       "BM=32 BN=128 GROUPS=2 STAGES=2 RESIDENT=1"},
      {"dtype=bf16 out=bf16 form=masked weights=q6_k epilogue=geglu routing=skewed groups=3 m=60 "
       "n=40 k=256",
       "BM=16 BN=64 GROUPS=1 STAGES=2 RESIDENT=1"},
      {"dtype=f16 out=f32 weights=int8 group=\"32\" epilogue=swiglu groups=6 m=200 n=130 k=288",
       "BM=32 BN=256 GROUPS=2 STAGES=2 RESIDENT=1"},
      {"dtype=bf16 out=bf16 weights=mxfp4 epilogue=swiglu groups=2 m=64 n=64 k=512",
       "BM=64 BN=128 GROUPS=2 STAGES=2 RESIDENT=0"}};
  for (const auto& [key, parameters] : cases) {
    SCOPED_TRACE(key);
    const Problem problem = catalog().read(fmt::format("quantized_grouped_gemm {}", key)).value();
    expect_right(problem, fmt::format("{} ROUND=0", parameters));
  }
}

TEST(QuantizedGroupedGemmTma, RandomProblemsAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const auto& [problem, config] :
       random_candidates(built_in("quantized_grouped_gemm"), hopper_of(2), "tma", 6, 1)) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
  }
}

// A row is two rows of the product, of eight at most.
TEST(QuantizedGemmStream, NormsRowsOfA) {
  const std::pair<const char*, const char*> cases[] = {
      {"dtype=f16 out=f16 prologue=rmsnorm m=1 n=70 k=1280",
       "WAVES=2 TN=1 RT=1 STAGES=2 RESIDENT=1"},
      {"dtype=f16 out=f16 weights=int8 zeros=groups prologue=rmsnorm epsilon=0.25 m=4 n=33 k=768",
       "WAVES=2 TN=2 RT=1 STAGES=3 RESIDENT=0"},
      {"dtype=bf16 out=bf16 epilogue=swiglu prologue=rmsnorm m=4 n=40 k=1024",
       "WAVES=4 TN=2 RT=1 STAGES=2 RESIDENT=1"},
      {"dtype=bf16 out=f32 weights=int8 epilogue=residual prologue=rmsnorm m=1 n=50 k=512",
       "WAVES=2 TN=1 RT=1 STAGES=2 RESIDENT=0"},
      {"dtype=f16 out=f16 zeros=groups epilogue=bias prologue=rmsnorm m=3 n=50 k=512",
       "WAVES=2 TN=1 RT=1 STAGES=2 RESIDENT=1"}};
  const Operation& operation = built_in("quantized_gemm");
  for (const auto& [key, parameters] : cases) {
    const Problem problem = catalog().read(fmt::format("quantized_gemm {}", key)).value();
    const auto config =
        operation.space(problem, hopper_of(2)).parse(fmt::format("stream {}", parameters));
    ASSERT_TRUE(config) << config.failure().message;
    expect_right_of_hopper(problem, *config, kernels::InputStyle::plain, 1);
    for (const std::uint64_t seed : {2, 3, 4, 5, 6, 7}) {
      expect_right_of_hopper(problem, *config, kernels::InputStyle::adversarial, seed);
    }
  }
}

TEST(QuantizedGemmStream, HasNoRoomForMoreNormedRows) {
  const Operation& operation = built_in("quantized_gemm");
  for (const auto& [dtype, rows] : {std::pair{"f16", 5}, std::pair{"bf16", 8}}) {
    const Problem problem =
        catalog()
            .read(fmt::format("quantized_gemm dtype={0} out={0} prologue=rmsnorm m={1} n=64 k=512",
                              dtype, rows))
            .value();
    const auto config = operation.space(problem, hopper_of(2))
                            .parse("stream WAVES=2 TN=1 RT=1 STAGES=2 RESIDENT=0");
    ASSERT_FALSE(config);
    EXPECT_NE(config.failure().message.find("must be at most 4"), std::string::npos);
  }
}

TEST(QuantizedGemmStream, RandomProblemsAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const auto& [problem, config] :
       random_candidates(built_in("quantized_gemm"), hopper_of(2), "stream", 6, 1)) {
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
  }
}

INSTANTIATE_TEST_SUITE_P(Ways, QuantizedGemmTma, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::quantized_gemm_tma_test
