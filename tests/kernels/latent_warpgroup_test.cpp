#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/kernels/hopper_runner.hpp"

// Protects: latent attention by warpgroups: kernels for sm_90, run on the sm_80 that hip-host
// emulates. Covers one to four warpgroups, panels of all swizzles, slices with a join of their own,
// masks, trees, pages, and dimensions that are no whole instruction.
namespace greta::test::latent_warpgroup_test {
namespace {

const Operation& latent() {
  return built_in("latent_attention");
}

struct Case {
  const char *name, *problem, *config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

class LatentWarpgroupCases : public ::testing::TestWithParam<Case> {};

TEST_P(LatentWarpgroupCases, AreRight) {
  const Case& c = GetParam();
  const auto problem = Problem::parse(std::string("latent_attention ") + c.problem);
  ASSERT_TRUE(problem) << problem.failure().message;
  const auto config = latent()
                          .space(*problem, architecture_info("sm_90").value())
                          .parse(std::string("warpgroups ") + c.config);
  ASSERT_TRUE(config) << config.failure().message;
  for (const InputStyle style : {InputStyle::plain, InputStyle::adversarial}) {
    expect_right_of_hopper(*problem, *config, style, 3);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LatentWarpgroupCases,
    ::testing::Values(
        Case{"two_groups", "dtype=bf16 out=bf16 batch=2 heads=80 q=1 kv=150 latent=512 rope=64",
             "BK=32 GROUPS=2 BUFFERS=2 SPLIT=1"},
        Case{"slices",
             "dtype=f16 out=f16 lse=stored batch=1 heads=128 q=1 kv=300 latent=256 rope=64",
             "BK=32 GROUPS=2 BUFFERS=3 SPLIT=4"},
        Case{"two_slices_whose_rows_are_joined_in_fours",
             "dtype=bf16 out=bf16 lse=stored batch=1 heads=65 q=1 kv=130 latent=128 rope=64",
             "BK=64 GROUPS=2 BUFFERS=2 SPLIT=2"},
        Case{"six_slices_whose_rows_are_joined_in_pairs",
             "dtype=bf16 out=f32 batch=3 heads=71 q=1 kv=200 latent=72 rope=8",
             "BK=32 GROUPS=1 BUFFERS=2 SPLIT=6"},
        Case{"three_groups_causal",
             "dtype=bf16 out=f32 mask=causal batch=2 heads=16 q=5 kv=200 latent=384 rope=64",
             "BK=48 GROUPS=3 BUFFERS=2 SPLIT=2"},
        Case{"four_groups_of_a_tree",
             "dtype=f16 out=f16 mask=tree batch=1 heads=16 q=9 kv=140 latent=256 rope=64",
             "BK=64 GROUPS=4 BUFFERS=2 SPLIT=1"},
        Case{"slices_that_rows_do_not_see",
             "dtype=bf16 out=bf16 mask=causal batch=2 heads=16 q=40 kv=96 latent=64 rope=16",
             "BK=32 GROUPS=2 BUFFERS=2 SPLIT=3"},
        Case{"pages_and_narrow_panels",
             "dtype=f16 out=f32 page_size=\"16\" batch=2 heads=40 q=2 kv=100 latent=72 rope=8",
             "BK=64 GROUPS=1 BUFFERS=2 SPLIT=2"}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Outputs and sums are multiplied again where a later tile has a much greater score.
TEST(LatentWarpgroups, GreatestScoresMayGrow) {
  const auto problem = Problem::parse(
      "latent_attention dtype=bf16 out=bf16 batch=1 heads=64 q=1 kv=256 latent=128 rope=64");
  ASSERT_TRUE(problem);
  auto inputs = latent().inputs(*problem, 5, InputStyle::plain);
  HostTensor& cache = inputs[1];
  ASSERT_EQ(cache.spec.name, "cache");
  for (std::size_t i = 0; i < cache.spec.elements(); ++i) {
    const auto key = static_cast<double>(i / static_cast<std::size_t>(cache.spec.cols));
    store_element(cache.spec.dtype, cache.data.data(), i, cache.at(i) * key / 16);
  }
  const Config config{"warpgroups", {{"BK", 32}, {"GROUPS", 2}, {"BUFFERS", 2}, {"SPLIT", 1}}};
  expect_right_of_hopper(*problem, config, inputs);
}

TEST(LatentWarpgroups, RandomOnesAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const auto& [problem, config] :
       random_candidates(latent(), hopper_of_two_units(), "warpgroups", 16, 1)) {
    expect_right_of_hopper(problem, config, InputStyle::adversarial, ++seed);
  }
}

// A round of workgroups on some units takes as long as one on all, and the join costs what it
// moves.
TEST(LatentWarpgroupSpace, SlicesLeaveFewUnitsIdleInTheLastRound) {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = 132;
  const auto split_of = [&](int batch, int q, int kv) {
    const auto problem = Problem::parse(
        fmt::format("latent_attention dtype=bf16 out=bf16 batch={} heads=128 q={} kv={} latent=512 "
                    "rope=64",
                    batch, q, kv));
    return latent().default_config(problem.value(), hopper)["SPLIT"];
  };
  EXPECT_EQ(split_of(17, 2, 8192), 3);  // 68 tiles: two rounds of a third, not one of all
  EXPECT_EQ(split_of(66, 1, 4096), 1);  // as many tiles as units
  EXPECT_EQ(split_of(64, 1, 1024), 1);
  EXPECT_EQ(split_of(8, 1, 2048), 8);    // 16 tiles
  EXPECT_EQ(split_of(1, 1, 32768), 64);  // two
}

TEST(LatentWarpgroupSpace, IsThatOfHopperAlone) {
  const auto problem = Problem::parse(
      "latent_attention dtype=bf16 out=bf16 batch=32 heads=128 q=1 kv=4096 latent=512 rope=64");
  ASSERT_TRUE(problem);
  const auto is_there = [&](const char* architecture) {
    const DeviceInfo info = architecture_info(architecture).value();
    return latent().default_config(*problem, info).variant == "warpgroups";
  };
  EXPECT_TRUE(is_there("sm_90"));
  for (const char* other : {"sm_80", "sm_100", "gfx942"}) EXPECT_FALSE(is_there(other)) << other;
}

}  // namespace
}  // namespace greta::test::latent_warpgroup_test
