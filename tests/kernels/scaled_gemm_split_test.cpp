#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/prior/predicted_config.hpp"
#include "tests/kernels/hopper_runner.hpp"

// Protects: `tma` of scaled_gemm whose workgroups share k. The last one to arrive adds the sums, in
// the order of k, leaves the counters as they were, and stores the tile as without slices; and
// which of its configurations are refused, and where slices and tiles of three warpgroups are
// predicted.
namespace greta::test::scaled_gemm_split_test {
namespace {

struct Case {
  const char* name;
  const char* key;
  const char* config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

Problem problem_of(const char* key) {
  return catalog().read(key).value();
}

Result<Config> config_of(const Problem& problem, const char* parameters) {
  return built_in(problem.op)
      .space(problem, hopper_of(2))
      .parse(fmt::format("tma SWIZZLE=4 {}", parameters));
}

constexpr Case cases[] = {
    {"tensors_of_uneven_k", "scaled_gemm dtype=bf16 out=bf16 m=130 n=72 k=656",
     "BM=128 BN=64 GROUPS=2 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=4 "
     "FOLD=1"},
    {"rows_of_odd_columns",
     "scaled_gemm dtype=f16 out=f16 format=e5m2 scales=row m=200 n=133 k=272",
     "BM=192 BN=32 GROUPS=3 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=3 "
     "FOLD=1"},
    {"blocks_whose_tiles_cross_a_border",
     "scaled_gemm dtype=bf16 out=bf16 format=e5m2 scales=block m=70 n=500 k=1040",
     "BM=64 BN=160 GROUPS=1 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=2 "
     "FOLD=1"},
    {"blocks_of_two_products", "scaled_gemm dtype=f32 out=f32 scales=block m=264 n=200 k=400",
     "BM=128 BN=64 GROUPS=1 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=1 STAGGER=0 SUMS=1 "
     "SPLIT=4 "
     "FOLD=1"},
    {"integers_of_rows", "scaled_gemm dtype=f16 out=f16 format=int8 scales=row m=270 n=136 k=400",
     "BM=256 BN=32 GROUPS=2 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=1 STAGGER=0 SUMS=1 "
     "SPLIT=2 "
     "FOLD=1"},
    {"integers_of_blocks",
     "scaled_gemm dtype=f32 out=f32 format=int8 scales=block m=67 n=133 k=272",
     "BM=64 BN=16 GROUPS=1 STAGES=4 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=3 "
     "FOLD=1"},
    {"one_row_of_eight_slices", "scaled_gemm dtype=bf16 out=bf16 scales=row m=1 n=40 k=1168",
     "BM=64 BN=8 GROUPS=1 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=8 "
     "FOLD=1"},
    {"groups_of_blocks_masked",
     "scaled_grouped_gemm dtype=bf16 out=bf16 form=masked format=e5m2 scales=block groups=3 m=130 "
     "n=200 k=400",
     "BM=128 BN=96 GROUPS=2 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=1 STAGGER=0 SUMS=1 "
     "SPLIT=2 "
     "FOLD=1"},
    {"gates_of_rows",
     "scaled_grouped_gemm dtype=f16 out=f16 scales=row epilogue=swiglu groups=4 m=300 n=100 k=656",
     "BM=64 BN=64 GROUPS=1 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 "
     "SPLIT=3 "
     "FOLD=1"},
};

class ScaledGemmSlices : public ::testing::TestWithParam<Case> {};

TEST_P(ScaledGemmSlices, AreRight) {
  const Problem problem = problem_of(GetParam().key);
  const auto config = config_of(problem, GetParam().config);
  ASSERT_TRUE(config) << config.failure().message;
  expect_right_of_hopper(problem, *config, kernels::InputStyle::plain, 1);
  expect_right_of_hopper(problem, *config, kernels::InputStyle::adversarial, 2);
}

INSTANTIATE_TEST_SUITE_P(Ways, ScaledGemmSlices, ::testing::ValuesIn(cases),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// Returns operands of a product of e4m3 by scales of 1.
std::vector<HostTensor> unscaled_inputs(const Problem& problem) {
  auto inputs = built_in(problem.op).inputs(problem, 3, kernels::InputStyle::plain);
  for (const int scales : {2, 3}) {
    store_element(DType::f32, inputs[scales].data.data(), 0, 1);
  }
  return inputs;
}

/// Returns C by a configuration, of which two runs must be the same.
HostTensor product(const Problem& problem, const std::vector<HostTensor>& inputs,
                   const char* parameters) {
  const Operation& operation = built_in(problem.op);
  auto plan = operation.plan(problem, hopper_of(2), config_of(problem, parameters).value()).value();
  for (KernelSource& source : plan.sources) source.options.clear();
  auto done = run_plan(device("hip-host:0"), plan, operation.tensors(problem), inputs, 2).value();
  EXPECT_EQ(done.overrun, "");
  EXPECT_EQ(done.changed, "");
  return std::move(done.outputs.at(0));
}

/// Returns the operands' numbers of `count` k from `first` on.
std::vector<HostTensor> part_of(const std::vector<HostTensor>& inputs, const Problem& part,
                                std::int64_t first) {
  std::vector<HostTensor> parts = unscaled_inputs(part);
  for (const std::size_t operand : {0, 1}) {
    HostTensor& to = parts[operand];
    const std::int64_t all = inputs[operand].spec.cols, count = to.spec.cols;
    for (std::int64_t i = 0; i < to.spec.rows * count; ++i) {
      to.data[i] = inputs[operand].data[i / count * all + first + i % count];
    }
  }
  return parts;
}

TEST(ScaledGemmSlicesOrder, IsThatOfK) {
  const Problem problem = problem_of("scaled_gemm dtype=f32 out=f32 m=70 n=40 k=896");
  const std::string form =
      "BM=64 BN=32 GROUPS=1 STAGES=2 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 STAGGER=0 SUMS=1 ";
  const auto inputs = unscaled_inputs(problem);
  const HostTensor c = product(problem, inputs, (form + "SPLIT=3 FOLD=1").c_str());
  std::vector<float> sums(c.spec.elements());
  constexpr std::int64_t ends[] = {0, 256, 512, 896};  // of 2, 2 and 3 of the 7 steps
  for (int slice = 0; slice < 3; ++slice) {
    const Problem part = problem_of(
        fmt::format("scaled_gemm dtype=f32 out=f32 m=70 n=40 k={}", ends[slice + 1] - ends[slice])
            .c_str());
    const HostTensor own =
        product(part, part_of(inputs, part, ends[slice]), (form + "SPLIT=1 FOLD=1").c_str());
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += static_cast<float>(own.at(i));
  }
  for (std::size_t i = 0; i < sums.size(); ++i) {
    ASSERT_EQ(static_cast<float>(c.at(i)), sums[i]) << i;
  }
}

TEST(ScaledGemmSlicesProblems, RandomOnesAreRightOnAdversarialInputs) {
  const Operation& operation = built_in("scaled_gemm");
  std::uint64_t seed = 1;
  int run = 0;
  for (const auto& [problem, config] :
       kernels::random_candidates(operation, hopper_of(2), "tma", 40, 1)) {
    if (config["SPLIT"] == 1) continue;
    expect_right_of_hopper(problem, config, kernels::InputStyle::adversarial, ++seed);
    ++run;
  }
  EXPECT_GT(run, 2);
}

TEST(ScaledGemmSlicesSpace, RefusesWhatHasNoPlaceForItsSums) {
  struct Choice {
    const char* key;
    const char* parameters;
    bool valid;
  };
  constexpr const char* plain = "scaled_gemm dtype=bf16 out=bf16 m=200 n=200 k=400";
  constexpr const char* grouped =
      "scaled_grouped_gemm dtype=bf16 out=bf16 groups=2 m=200 n=200 k=400";
  constexpr Choice choices[] = {
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=4 FOLD=1", true},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=6 FOLD=1", false},  // 4 steps
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=1 STORE=0 SPLIT=2 FOLD=1", false},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=2 RESIDENT=0 STORE=1 SPLIT=2 FOLD=1", true},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=4 FOLD=2", true},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=1 FOLD=2", false},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=2 RESIDENT=0 STORE=0 SPLIT=2 FOLD=2", false},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=1 SPLIT=2 FOLD=2", false},
      {plain, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=3 FOLD=2",
       false},  // 8 eights
      {plain, "BN=96 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=3 FOLD=2", true},
      {grouped, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=2 FOLD=1", true},
      {grouped, "BN=64 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 STORE=0 SPLIT=2 FOLD=2", false},
  };
  for (const Choice& choice : choices) {
    const std::string parameters =
        fmt::format("BM=64 GROUPS=1 STAGES=2 STAGGER=0 SUMS=1 {}", choice.parameters);
    const auto config = config_of(problem_of(choice.key), parameters.c_str());
    EXPECT_EQ(static_cast<bool>(config), choice.valid) << choice.key << ": " << parameters;
  }
}

TEST(ScaledGemmPrediction, SharesKOfFewTilesAndCountsRounds) {
  struct Choice {
    const char* key;
    bool shares_k;
    int rows;  ///< of a tile; 0: any
  };
  constexpr Choice choices[] = {
      {"scaled_gemm dtype=bf16 out=bf16 m=157 n=3264 k=12752", true, 0},
      {"scaled_gemm dtype=bf16 out=bf16 scales=block m=200 n=1536 k=7168", true, 0},
      // 378 tiles are just less than three rounds of 132 units, 279 of 256 rows more than two.
      {"scaled_gemm dtype=bf16 out=bf16 scales=row m=7900 n=1152 k=3072", false, 192},
      {"scaled_gemm dtype=bf16 out=bf16 m=4096 n=4096 k=4096", false, 256},
      {"scaled_gemm dtype=bf16 out=bf16 m=300 n=3264 k=512", false, 0},  // four steps
  };
  const DeviceInfo hopper = architecture_info("sm_90").value();
  for (const Choice& choice : choices) {
    const Problem problem = problem_of(choice.key);
    const auto config = kernels::predicted_config(built_in(problem.op), problem, hopper);
    ASSERT_TRUE(config) << choice.key;
    EXPECT_EQ(config->variant, "tma");
    EXPECT_EQ((*config)["SPLIT"] > 1, choice.shares_k) << choice.key << ": " << config->text();
    if (choice.rows > 0) EXPECT_EQ((*config)["BM"], choice.rows) << choice.key;
  }
}

}  // namespace
}  // namespace greta::test::scaled_gemm_split_test
