#include <fmt/format.h>
#include <gtest/gtest.h>

#include <iterator>
#include <string>

#include "tests/kernels/hopper_runner.hpp"

// Protects: latent attention by warpgroups, together or alternating: kernels for sm_90, run on the
// sm_80 that hip-host emulates. Covers one to four warpgroups, panels of all swizzles, slices with
// a join of their own, keys of all sequences that are divided evenly, weights that replace
// dimensions of their tile, masks, trees, pages, and dimensions that are no whole instruction.
namespace greta::test::latent_warpgroup_test {
namespace {

const Operation& latent() {
  return built_in("latent_attention");
}

struct Case {
  const char *name, *problem, *config;
  std::uint32_t units = 2;  ///< of the device
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

class LatentWarpgroupCases : public ::testing::TestWithParam<Case> {};

TEST_P(LatentWarpgroupCases, AreRight) {
  const Case& c = GetParam();
  const auto problem = Problem::parse(std::string("latent_attention ") + c.problem);
  ASSERT_TRUE(problem) << problem.failure().message;
  const auto config = latent().space(*problem, architecture_info("sm_90").value()).parse(c.config);
  ASSERT_TRUE(config) << config.failure().message;
  for (const InputStyle style : {InputStyle::plain, InputStyle::adversarial}) {
    expect_right_of_hopper(*problem, *config, style, 3, c.units);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, LatentWarpgroupCases,
    ::testing::Values(
        Case{"two_groups", "dtype=bf16 out=bf16 batch=2 heads=80 q=1 kv=150 latent=512 rope=64",
             "warpgroups BK=32 GROUPS=2 BUFFERS=2 SPLIT=1"},
        Case{"slices",
             "dtype=f16 out=f16 lse=stored batch=1 heads=128 q=1 kv=300 latent=256 rope=64",
             "warpgroups BK=32 GROUPS=2 BUFFERS=3 SPLIT=4"},
        Case{"two_slices_whose_rows_are_joined_in_fours",
             "dtype=bf16 out=bf16 lse=stored batch=1 heads=65 q=1 kv=130 latent=128 rope=64",
             "warpgroups BK=64 GROUPS=2 BUFFERS=2 SPLIT=2"},
        Case{"six_slices_whose_rows_are_joined_in_pairs",
             "dtype=bf16 out=f32 batch=3 heads=71 q=1 kv=200 latent=72 rope=8",
             "warpgroups BK=32 GROUPS=1 BUFFERS=2 SPLIT=6"},
        Case{"three_groups_causal",
             "dtype=bf16 out=f32 mask=causal batch=2 heads=16 q=5 kv=200 latent=384 rope=64",
             "warpgroups BK=48 GROUPS=3 BUFFERS=2 SPLIT=2"},
        Case{"four_groups_of_a_tree",
             "dtype=f16 out=f16 mask=tree batch=1 heads=16 q=9 kv=140 latent=256 rope=64",
             "warpgroups BK=64 GROUPS=4 BUFFERS=2 SPLIT=1"},
        Case{"slices_that_rows_do_not_see",
             "dtype=bf16 out=bf16 mask=causal batch=2 heads=16 q=40 kv=96 latent=64 rope=16",
             "warpgroups BK=32 GROUPS=2 BUFFERS=2 SPLIT=3"},
        Case{"pages_and_narrow_panels",
             "dtype=f16 out=f32 page_size=\"16\" batch=2 heads=40 q=2 kv=100 latent=72 rope=8",
             "warpgroups BK=64 GROUPS=1 BUFFERS=2 SPLIT=2"},
        Case{"alternating_with_an_odd_tile",
             "dtype=bf16 out=bf16 batch=2 heads=80 q=1 kv=150 latent=512 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=0"},
        Case{"alternating_with_weights_of_their_own",
             "dtype=f16 out=f32 batch=1 heads=70 q=1 kv=200 latent=128 rope=0",
             "pingpong BK=48 SPLIT=1 STREAM_K=0"},
        Case{"alternating_slices",
             "dtype=f16 out=f16 lse=stored batch=1 heads=128 q=1 kv=300 latent=256 rope=64",
             "pingpong BK=32 SPLIT=4 STREAM_K=0"},
        Case{"alternating_through_pages",
             "dtype=bf16 out=bf16 mask=causal page_size=\"16\" batch=2 heads=16 q=5 kv=200 "
             "latent=64 "
             "rope=16",
             "pingpong BK=32 SPLIT=2 STREAM_K=0"},
        Case{"more_parts_of_a_sequence_than_are_joined_at_once",
             "dtype=bf16 out=bf16 lse=stored batch=1 heads=64 q=1 kv=400 latent=128 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=1", 9},
        Case{"parts_of_more_sequences_than_lanes",
             "dtype=f16 out=f16 lse=stored batch=37 heads=33 q=1 kv=90 latent=64 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=1", 5},
        Case{"parts_of_more_sequences_than_lanes_load_at_once",
             "dtype=f16 out=f16 batch=259 heads=33 q=1 kv=40 latent=64 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=1", 3},
        Case{"parts_of_sequences_of_all_lengths",
             "dtype=bf16 out=f32 lengths=ragged batch=9 heads=40 q=1 kv=200 latent=64 rope=16",
             "pingpong BK=48 SPLIT=1 STREAM_K=1", 5},
        Case{"parts_of_two_tiles_through_pages",
             "dtype=bf16 out=bf16 lengths=ragged page_size=\"16\" batch=4 heads=70 q=1 kv=250 "
             "latent=64 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=1", 6},
        Case{"more_tiles_than_units_have_no_parts",
             "dtype=bf16 out=bf16 mask=causal batch=3 heads=64 q=3 kv=150 latent=64 rope=64",
             "pingpong BK=64 SPLIT=1 STREAM_K=1"},
        Case{"parts_of_a_tree",
             "dtype=f16 out=f16 mask=tree batch=3 heads=16 q=6 kv=140 latent=256 rope=64",
             "pingpong BK=32 SPLIT=1 STREAM_K=1", 6}),
    [](const auto& instance) { return std::string(instance.param.name); });

// Rows without keys wait for no copy: what comes after them must not overtake their outputs.
TEST(LatentWarpgroups, AWorkgroupHasSequencesWithoutKeys) {
  const auto problem = Problem::parse(
      "latent_attention dtype=bf16 out=bf16 lengths=ragged batch=9 heads=40 q=1 kv=96 latent=64 "
      "rope=64");
  ASSERT_TRUE(problem);
  auto inputs = latent().inputs(*problem, 5, InputStyle::plain);
  HostTensor& lengths = inputs[2];
  ASSERT_EQ(lengths.spec.name, "lengths");
  const int keys[] = {0, 96, 0, 40, 0, 0, 33, 7, 0};
  for (std::size_t i = 0; i < std::size(keys); ++i) {
    store_element(DType::i32, lengths.data.data(), i, keys[i]);
  }
  const Config config{"pingpong", {{"BK", 32}, {"SPLIT", 1}, {"STREAM_K", 1}}};
  for (const std::uint32_t units : {1, 2, 3, 5}) {
    SCOPED_TRACE(units);
    expect_right_of_hopper(*problem, config, inputs, 1, units);
  }
}

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
  for (const Config& config :
       {Config{"warpgroups", {{"BK", 32}, {"GROUPS", 2}, {"BUFFERS", 2}, {"SPLIT", 1}}},
        Config{"pingpong", {{"BK", 32}, {"SPLIT", 1}, {"STREAM_K", 0}}}}) {
    expect_right_of_hopper(*problem, config, inputs);
  }
}

TEST(LatentWarpgroups, RandomOnesAreRightOnAdversarialInputs) {
  std::uint64_t seed = 1;
  for (const char* variant : {"warpgroups", "pingpong"}) {
    for (const auto& [problem, config] :
         random_candidates(latent(), hopper_of(2), variant, 16, 1)) {
      expect_right_of_hopper(problem, config, InputStyle::adversarial, ++seed);
    }
  }
}

// A round of workgroups on some units takes as long as one on all, the join costs what it moves,
// and keys that no other workgroup reads come from memory.
TEST(LatentWarpgroupSpace, KeysAreDividedByPredictedTime) {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = 132;
  const auto slices_of = [&](int batch, int heads, int q, int kv) {
    const auto problem = Problem::parse(
        fmt::format("latent_attention dtype=bf16 out=bf16 batch={} heads={} q={} kv={} latent=512 "
                    "rope=64",
                    batch, heads, q, kv));
    const Config config = latent().default_config(problem.value(), hopper);
    return config["STREAM_K"] != 0 ? 0 : config["SPLIT"];
  };
  EXPECT_EQ(slices_of(17, 128, 2, 8192), 0);   // 68 tiles: evenly, not two rounds of slices
  EXPECT_EQ(slices_of(66, 128, 1, 4096), 1);   // as many tiles as units
  EXPECT_EQ(slices_of(64, 128, 1, 1024), 1);   // and nearly as many
  EXPECT_EQ(slices_of(256, 128, 1, 2048), 1);  // four rounds of short tiles
  EXPECT_EQ(slices_of(64, 64, 1, 4096), 2);    // memory is busy with half of the units
  EXPECT_EQ(slices_of(150, 64, 1, 3000), 0);   // one round and a seventh
  EXPECT_EQ(slices_of(8, 128, 1, 2048), 8);    // few sequences
  EXPECT_EQ(slices_of(16, 64, 1, 8192), 8);    // memory is hardly faster for fewer units
  EXPECT_EQ(slices_of(7, 128, 1, 300), 1);     // the join takes longer than a few tiles
  EXPECT_GT(slices_of(3, 128, 1, 672), 4);     // few tiles of rows, most units idle
  EXPECT_EQ(slices_of(1, 128, 1, 32768), 64);
  EXPECT_EQ(slices_of(1, 128, 256, 4096), 1);  // more tiles of a sequence than units
}

// Of more tiles than units, each workgroup has whole sequences: it leaves nothing to be joined.
TEST(LatentWarpgroupSpace, WholeSequencesNeedNoWorkspace) {
  const Config config{"pingpong", {{"BK", 32}, {"SPLIT", 1}, {"STREAM_K", 1}}};
  for (const int heads : {64, 192}) {
    const auto problem = Problem::parse(fmt::format(
        "latent_attention dtype=bf16 out=bf16 batch=2 heads={} q=1 kv=96 latent=64 rope=64",
        heads));
    const auto plan = latent().plan(problem.value(), hopper_of(2), config);
    ASSERT_TRUE(plan) << plan.failure().message;
    EXPECT_EQ(plan->workspace_bytes > 0, heads == 64);
    EXPECT_EQ(plan->launches.size(), heads == 64 ? 2U : 1U);
  }
}

TEST(LatentWarpgroupSpace, IsThatOfHopperAlone) {
  const auto problem = Problem::parse(
      "latent_attention dtype=bf16 out=bf16 batch=32 heads=128 q=1 kv=4096 latent=512 rope=64");
  ASSERT_TRUE(problem);
  for (const char* variant : {"warpgroups", "pingpong"}) {
    const auto is_there = [&](const char* architecture) {
      const auto space = latent().space(*problem, architecture_info(architecture).value());
      return space.count(variant) > 0;
    };
    EXPECT_TRUE(is_there("sm_90"));
    for (const char* other : {"sm_80", "sm_100", "gfx942"}) EXPECT_FALSE(is_there(other)) << other;
  }
  EXPECT_EQ(latent().default_config(*problem, architecture_info("sm_90").value()).variant,
            "pingpong");
}

}  // namespace
}  // namespace greta::test::latent_warpgroup_test
