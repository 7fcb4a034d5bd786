#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernels/sampling/candidates.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"
#include "tests/kernels/attention_runs.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: attention by warpgroups: kernels for sm_90, run on the sm_80 that hip-host emulates,
// where wgmma reads shared memory through descriptors as specified in the PTX manual, and A also
// from registers. Covers panels of all swizzles, dimensions that are no whole instruction, one to
// three warpgroups, rings of buffers, partial tiles, any number of valid keys, heads that share a
// KV head in one tile, and slices of keys that the last workgroup joins, with and without a
// producer.
namespace greta::test::attention_warpgroup_test {
namespace {

struct Case {
  const char* name;
  AttentionShape shape;
  DType in, out;
  const char* config;
  std::vector<std::int64_t> lengths;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  const auto f16 = DType::f16, bf16 = DType::bf16, f32 = DType::f32;
  return {
      {"two_groups_causal",
       {2, 2, 1, 150, 300, 64, true},
       f16,
       f16,
       "BK=64 GROUPS=2 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {300, 170}},
      {"one_group_two_panels",
       {1, 3, 3, 70, 130, 128, false},
       bf16,
       bf16,
       "BK=48 GROUPS=1 STAGES=3 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {}},
      {"three_groups_f32_out",
       {1, 2, 2, 200, 260, 64, true},
       f16,
       f32,
       "BK=80 GROUPS=3 STAGES=4 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {}},
      {"panels_of_64_bytes",
       {2, 1, 1, 65, 100, 96, true},
       f16,
       f16,
       "BK=32 GROUPS=2 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {100, 66}},
      {"panels_of_32_bytes",
       {1, 2, 1, 64, 97, 80, false},
       bf16,
       f32,
       "BK=96 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {96}},
      {"half_an_instruction",
       {1, 1, 1, 64, 50, 40, false},
       f16,
       f16,
       "BK=32 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {}},
      {"wide_heads",
       {1, 2, 1, 40, 64, 256, true},
       f16,
       f16,
       "BK=32 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {}},
      {"no_key_one_key_all",
       {4, 2, 1, 66, 140, 64, false},
       f16,
       f16,
       "BK=64 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {0, 1, 140, 64}},
      {"producer",
       {2, 2, 1, 150, 300, 64, true},
       f16,
       f16,
       "BK=64 GROUPS=2 STAGES=2 PRODUCER=1 TURNS=0 PACK=0 SPLIT=1",
       {300, 170}},
      {"producer_of_three",
       {1, 2, 2, 200, 260, 128, false},
       bf16,
       bf16,
       "BK=48 GROUPS=3 STAGES=3 PRODUCER=1 TURNS=0 PACK=0 SPLIT=1",
       {250}},
      {"turns",
       {4, 2, 2, 130, 260, 64, true},
       f16,
       f32,
       "BK=48 GROUPS=2 STAGES=3 PRODUCER=1 TURNS=1 PACK=0 SPLIT=1",
       {0, 1, 130, 260}},
      {"fewer_keys_than_queries",
       {4, 1, 1, 130, 140, 64, true},
       bf16,
       bf16,
       "BK=64 GROUPS=2 STAGES=3 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {0, 3, 129, 64}},
      {"shorter_values",
       {2, 2, 1, 150, 260, 192, true, 128},
       f16,
       f16,
       "BK=64 GROUPS=2 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {260, 151}},
      {"longer_values",
       {1, 2, 2, 70, 130, 64, false, 200},
       bf16,
       bf16,
       "BK=32 GROUPS=1 STAGES=3 PRODUCER=0 TURNS=0 PACK=0 SPLIT=1",
       {}},
      {"values_of_wider_panels",
       {1, 2, 1, 130, 150, 40, true, 64},
       f16,
       f32,
       "BK=48 GROUPS=2 STAGES=3 PRODUCER=1 TURNS=0 PACK=0 SPLIT=1",
       {149}},
      {"packed_heads_causal",
       {2, 6, 2, 75, 150, 64, true},
       f16,
       f16,
       "BK=64 GROUPS=2 STAGES=2 PRODUCER=0 TURNS=0 PACK=1 SPLIT=1",
       {150, 91}},
      {"slices_some_without_keys",
       {3, 2, 2, 70, 500, 64, false},
       bf16,
       f32,
       "BK=48 GROUPS=1 STAGES=3 PRODUCER=0 TURNS=0 PACK=0 SPLIT=4",
       {500, 60, 0}},
      {"slices_joined_without_the_producer",
       {1, 3, 3, 130, 420, 128, true},
       f16,
       f16,
       "BK=80 GROUPS=2 STAGES=2 PRODUCER=1 TURNS=1 PACK=0 SPLIT=3",
       {}},
      {"slices_of_packed_heads",
       {2, 7, 1, 40, 333, 80, true},
       bf16,
       bf16,
       "BK=32 GROUPS=3 STAGES=2 PRODUCER=1 TURNS=0 PACK=1 SPLIT=6",
       {333, 41}},
  };
}

/// Returns the plan for a Hopper, with sources for hip-host.
LaunchPlan hopper_plan(const Problem& problem, const Config& config) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  LaunchPlan plan = built_in("attention").plan(problem, hopper, config).value();
  for (KernelSource& source : plan.sources) source.options.clear();  // for NVRTC
  return plan;
}

/// Expects that the kernel's results on these inputs are within the bound.
void expect_right(const Problem& problem, const Config& config,
                  const std::vector<HostTensor>& inputs) {
  const Operation& attention = built_in("attention");
  const auto done = run_plan(device("hip-host:0"), hopper_plan(problem, config),
                             attention.tensors(problem), inputs);
  ASSERT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
  EXPECT_EQ(done->overrun, "");
  const Verdict verdict = attention.reference(problem, inputs, 1)->check(done->outputs);
  EXPECT_TRUE(verdict.passed) << problem.key() << " " << config.text() << ": " << verdict.detail;
}

class AttentionWarpgroupCases : public ::testing::TestWithParam<Case> {};

TEST_P(AttentionWarpgroupCases, AreRight) {
  const Case& c = GetParam();
  const Problem problem = attention_problem(c.shape, c.in, c.out);
  const auto config = built_in("attention")
                          .space(problem, architecture_info("sm_90").value())
                          .parse(fmt::format("warpgroups {} FOLD=1 TOGETHER=2", c.config));
  ASSERT_TRUE(config) << config.failure().message;
  auto inputs = attention_inputs(problem, 1, c.lengths);
  spoil_invalid_keys(problem, c.lengths, inputs);
  expect_right(problem, *config, inputs);
}

TEST(AttentionWarpgroups, RandomOnesAreRightOnAdversarialInputs) {
  const Operation& attention = built_in("attention");
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  std::uint64_t seed = 1;
  for (const auto& [problem, config] : random_candidates(attention, hopper, "warpgroups", 16, 1)) {
    expect_right(problem, config, attention.inputs(problem, ++seed, InputStyle::adversarial));
  }
}

INSTANTIATE_TEST_SUITE_P(All, AttentionWarpgroupCases, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

/// Returns the number of configurations of the variant.
std::uint64_t count(const char* architecture, DType type) {
  const Operation& attention = built_in("attention");
  const Problem problem = attention_problem({1, 8, 8, 512, 512, 128, true}, type, type);
  for (const Variant& variant : attention.variants) {
    if (variant.name != "warpgroups") continue;
    return Space({variant.space(attention.shape(problem), architecture_info(architecture).value())})
        .count();
  }
  return 0;
}

TEST(AttentionWarpgroupSpace, IsThatOfHopperAloneAndOfHalves) {
  EXPECT_GT(count("sm_90", DType::f16), 0U);
  EXPECT_EQ(count("sm_90", DType::f16), count("sm_90", DType::bf16));
  EXPECT_EQ(count("sm_90", DType::f32), 0U);
  for (const char* other : {"sm_80", "sm_100", "sm_120", "gfx942"}) {
    EXPECT_EQ(count(other, DType::f16), 0U) << other;
  }
}

/// Returns the variant of the default on a Hopper.
std::string default_variant(const std::string& key) {
  const Problem problem = Problem::parse(key).value();
  return built_in("attention").default_config(problem, architecture_info("sm_90").value()).variant;
}

TEST(AttentionWarpgroupSpace, HasADefaultForManyQueriesOfEveryKindAndNoneForFew) {
  for (const int dim : {8, 64, 80, 96, 128, 192, 256}) {
    for (const int queries : {64, 70, 512, 3000}) {
      for (const char* heads : {"batch=1 heads=4 kv_heads=1", "batch=32 heads=32 kv_heads=8",
                                "batch=16 heads=16 kv_heads=16"}) {
        const std::string key =
            fmt::format("attention dtype=f16 out=f16 {} q={} kv=8192 dim={}", heads, queries, dim);
        EXPECT_EQ(default_variant(key), "warpgroups") << key;
      }
    }
  }
  for (const char* few : {"batch=1 heads=32 kv_heads=8 q=16 kv=4096 dim=128",
                          "batch=4 heads=64 kv_heads=8 q=5 kv=4096 dim=96",
                          "batch=1 heads=64 kv_heads=1 q=1 kv=4096 dim=128"}) {
    EXPECT_NE(default_variant(std::string("attention dtype=f16 out=f16 ") + few), "warpgroups");
  }
  // 256 queries in all, eight of each sequence.
  EXPECT_NE(default_variant("attention dtype=f16 out=f16 mask=causal sequences=packed batch=32 "
                            "heads=32 kv_heads=8 q=256 kv=65536 dim=128"),
            "warpgroups");
}

TEST(AttentionWarpgroupSpace, IsTheDefaultForManyQueries) {
  const Problem problem =
      attention_problem({4, 32, 32, 4096, 4096, 128, true}, DType::f16, DType::f16);
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const Config config = built_in("attention").default_config(problem, hopper);
  EXPECT_EQ(config.variant, "warpgroups") << config.text();
  const auto plan = built_in("attention").plan(problem, hopper, config).value();
  EXPECT_EQ(plan.sources[0].options, std::vector<std::string>{"--gpu-architecture=sm_90a"});
}

}  // namespace
}  // namespace greta::test::attention_warpgroup_test
