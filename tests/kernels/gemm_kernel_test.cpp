#include <gtest/gtest.h>

#include <iterator>
#include <random>

#include "kernels/model/random.hpp"
#include "kernels/templates/gemm/gemm.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta {
namespace {

using test::gemm_problem;

void expect_right(const Problem& problem, const Config& config, std::uint64_t seed = 1) {
  test::expect_right(gemm_template(), problem,
                     gemm_template().plan(problem, test::device().info(), config), config.text(),
                     seed);
}

template <typename List>
auto pick(const List& list, std::mt19937_64& random) {
  return list[uniform_below(random, std::size(list))];
}

/// A small problem with edges in every dimension, of any layout, type and epilogue.
Problem random_problem(std::mt19937_64& random, std::int64_t most_rows) {
  const auto extent = [&](std::int64_t most) {
    const auto size =
        static_cast<std::int64_t>(1 + uniform_below(random, static_cast<std::uint64_t>(most)));
    // Often a multiple of 8, so that wide vectors are allowed.
    return uniform_below(random, 2) == 0 ? size : (size + 7) / 8 * 8;
  };
  const std::string layouts[] = {"nn", "nt", "tn"};
  const std::string epilogues[] = {"none", "none", "bias", "residual,silu", "bias,residual,gelu"};
  const std::string alphas[] = {"1", "1", "-0.5"}, betas[] = {"0", "0", "2"};
  std::vector<std::pair<std::string, std::string>> attributes;
  const auto add = [&](const char* name, const std::string& value, const char* fallback) {
    if (value != fallback) attributes.emplace_back(name, value);
  };
  add("layout", pick(layouts, random), "nn");
  add("epilogue", pick(epilogues, random), "none");
  add("alpha", pick(alphas, random), "1");
  add("beta", pick(betas, random), "0");
  const DTypes types = pick(gemm_template().dtypes, random);
  const std::int64_t m = std::min(extent(most_rows), most_rows);
  const std::int64_t n = extent(200), k = extent(200);
  return gemm_problem(m, n, k, types.in, types.out, attributes);
}

/// Random problems with random configurations of one variant.
void run_random(std::string_view variant, std::uint64_t seed, int cases, std::int64_t most_rows) {
  std::mt19937_64 random(seed);
  for (int done = 0; done < cases;) {
    const Problem problem = random_problem(random, most_rows);
    const Space space = gemm_template().space(problem, test::device().info());
    if (space.count(variant) == 0) continue;  // e.g. too few K steps to split
    expect_right(problem, space.sample(variant, random), seed);
    ++done;
  }
}

TEST(GemmKernel, RandomTiled) {
  run_random("tiled", 1, 14, 200);
}

TEST(GemmKernel, RandomSplitK) {
  run_random("split_k", 2, 12, 200);
}

TEST(GemmKernel, RandomGemv) {
  run_random("gemv", 3, 14, 8);
}

TEST(GemmKernel, DefaultsAndNaive) {
  std::mt19937_64 random(4);
  for (int i = 0; i < 4; ++i) {
    const Problem problem = random_problem(random, i % 2 == 0 ? 8 : 200);
    const DeviceInfo& info = test::device().info();
    expect_right(problem, gemm_template().default_config(problem, info));
    test::expect_right(gemm_template(), problem,
                       gemm_template().plan(problem, info, gemm_template().naive), "naive");
  }
  const Problem one = gemm_problem(1, 1, 1);
  expect_right(one, gemm_template().default_config(one, test::device().info()));
}

TEST(GemmKernel, WalksLongKAndManyTilesInGroups) {
  const Problem problem = gemm_problem(300, 260, 2050);
  const Space space = gemm_template().space(problem, test::device().info());
  for (const char* text : {"tiled BM=32 BN=64 TM=4 TN=4 LX=8 BK=16 STAGES=2 PAD=4 VA=2 VB=4 "
                           "UNROLL=2 SWIZZLE=4 SUBGROUP=0",
                           "split_k BM=64 BN=32 TM=4 TN=4 LX=4 BK=8 STAGES=1 PAD=0 VA=1 VB=1 "
                           "UNROLL=1 SWIZZLE=16 SUBGROUP=0 SPLIT=8"}) {
    expect_right(problem, space.parse(text).value());
  }
}

TEST(GemmKernel, FactorsAreArgumentsNotSource) {
  const DeviceInfo& info = test::device().info();
  const Problem plain = gemm_problem(33, 40, 17);
  const Problem scaled =
      gemm_problem(33, 40, 17, DType::f32, DType::f32, {{"alpha", "3"}, {"beta", "-1"}});
  const Config config = gemm_template().default_config(plain, info);
  const auto a = gemm_template().plan(plain, info, config);
  const auto b = gemm_template().plan(scaled, info, config);
  ASSERT_TRUE(a && b);
  EXPECT_EQ(a->sources[0].text, b->sources[0].text);
  expect_right(scaled, config);
}

// Mesa's CPU driver ends loops after 65535 rounds: long K needs slices there.
TEST(GemmKernel, TheDefaultIsRightForLongK) {
  const Problem problem = gemm_problem(33, 34, 150000);
  const DeviceInfo& info = test::device().info();
  expect_right(problem, gemm_template().default_config(problem, info));
}

TEST(GemmKernel, TheTextRefusesBrokenParameters) {
  const Problem problem = gemm_problem(64, 64, 64);
  const DeviceInfo& info = test::device().info();
  const Config config = gemm_template()
                            .space(problem, info)
                            .parse(
                                "tiled BM=64 BN=64 TM=8 TN=8 LX=8 BK=8 STAGES=1 PAD=0 VA=4 VB=4 "
                                "UNROLL=1 SWIZZLE=1 SUBGROUP=0")
                            .value();
  const auto plan = gemm_template().plan(problem, info, config);
  ASSERT_TRUE(plan) << plan.failure().message;
  const auto compile_with = [&](const std::string& from, const std::string& to) {
    KernelSource source = plan->sources[0];
    const auto at = source.text.find(from);
    if (at == std::string::npos) return std::string("no ") + from;
    source.text.replace(at, from.size(), to);
    const auto kernel = test::device().compile(source);
    return kernel ? "compiled" : kernel.failure().log;
  };
  EXPECT_NE(compile_with("#define PAD ", "#define PADDING ").find("must be defined"),
            std::string::npos);
  EXPECT_NE(compile_with("#define TM 8", "#define TM 6").find("4-wide pieces"), std::string::npos);
  EXPECT_NE(compile_with("#define STAGES 1", "#define STAGES 3").find("STAGES is 1 or 2"),
            std::string::npos);
}

}  // namespace
}  // namespace greta
