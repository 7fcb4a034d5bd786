// Protects: small problems are small and valid, and use the kernels of the given problem in other
// cases. There are none if kernels are compiled for a single problem.

#include "kernels/sampling/small_problems.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "kernels/model/problem_rules.hpp"
#include "kernels/sampling/coverage.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"

namespace greta::test::small_problems_test {
namespace {

const DeviceInfo device = architecture_info("gfx942").value();

struct Found {
  Problem problem;
  Config config;
  LaunchPlan plan;
  std::vector<SmallProblem> small;
};

Found small_problems_of(const char* key) {
  const Problem problem = Problem::parse(key).value();
  const Operation& operation = built_in(problem.op);
  const Config config = operation.default_config(problem, device);
  const LaunchPlan plan = operation.plan(problem, device, config).value();
  return {
      problem, config, plan,
      SmallProblems(operation, problem, device, 1, config, plan).with_kernels_of(config, plan, 2)};
}

/// Defaults of typical sizes, without partial tiles.
TEST(SmallProblems, OfEveryOperationHaveItsKernelsAndOtherCases) {
  for (const Operation& operation : catalog()) {
    const Problem problem = typical_problem(operation, operation.dtypes.front());
    SCOPED_TRACE(problem.key());
    const auto found = small_problems_of(problem.key().c_str());
    ASSERT_EQ(found.small.size(), 2U) << found.config.text();
    const auto own = features(operation, {found.problem, found.config});
    std::set<Feature> seen(own.begin(), own.end());
    for (const auto& [small, plan] : found.small) {
      EXPECT_NE(small, found.problem);
      EXPECT_TRUE(check_problem(operation, small)) << small.key();
      EXPECT_TRUE(same_kernels(plan, found.plan)) << small.key();
      EXPECT_LE(operation.work(small).flops, 4e7);
      EXPECT_LE(operation.work(small).bytes, 2 << 20);
      const auto there = features(operation, {small, found.config});
      seen.insert(there.begin(), there.end());
    }
    // The source depends on the length of a row that the default holds or splits, and it has
    // ROWS=1.
    const bool row_alone = found.config.variant == "held" || found.config.variant == "split";
    if (row_alone) continue;
    EXPECT_GT(seen.size(), own.size()) << "nothing new";
  }
}

/// Alpha and beta are launch arguments; layout and epilogue are not.
TEST(SmallProblems, ChangeTheAttributesThatKernelsAreGiven) {
  const auto found = small_problems_of("gemm dtype=f32 out=f32 epilogue=bias m=64 n=64 k=64");
  ASSERT_EQ(found.small.size(), 2U);
  std::set<std::string> alphas, betas;
  for (const auto& [small, plan] : found.small) {
    EXPECT_EQ(small.attribute("epilogue", "none"), "bias");
    EXPECT_EQ(small.attribute("layout", "nn"), "nn");
    alphas.insert(small.attribute("alpha", "1"));
    betas.insert(small.attribute("beta", "0"));
  }
  EXPECT_TRUE(alphas.contains("-0.5"));
  EXPECT_TRUE(betas.contains("2"));
}

TEST(SmallProblems, AttendWithOtherKeysThanQueriesAndGroupedHeads) {
  const auto found = small_problems_of(
      "attention dtype=f32 out=f32 mask=causal batch=1 heads=4 kv_heads=4 q=128 kv=128 dim=64");
  ASSERT_EQ(found.small.size(), 2U);
  const auto any = [&](auto differs) {
    return std::any_of(found.small.begin(), found.small.end(), [&](const SmallProblem& small) {
      EXPECT_EQ(small.problem.dim("dim"), 64);
      return differs(small.problem);
    });
  };
  EXPECT_TRUE(any([](const Problem& p) { return p.dim("q") != p.dim("kv"); }));
  EXPECT_TRUE(any([](const Problem& p) { return p.dim("heads") != p.dim("kv_heads"); }));
}

/// Buffers are filled again, and sums scaled late, only after several parts of the configuration's
/// own length, which the given problem does not have.
TEST(SmallProblems, TheLastHasManyPartsOfADivisionThatTheSeedPicks) {
  const auto most_parts = [](const char* key) {
    const Problem problem = Problem::parse(key).value();
    const Operation& operation = built_in(problem.op);
    const Config config = operation.default_config(problem, device);
    const LaunchPlan plan = operation.plan(problem, device, config).value();
    std::map<std::string, std::int64_t> most;
    for (std::uint64_t seed = 0; seed < 12; ++seed) {
      const SmallProblems some(operation, problem, device, seed, config, plan,
                               {.limit = {1e6, 256 << 10}, .most_drawn = 40, .attempts = 250});
      const auto chosen = some.with_kernels_of(config, plan, 2);
      if (chosen.empty()) continue;
      const ProblemShape shape = operation.shape(chosen.back().problem);
      for (const Division& one : operation.variant(config.variant).divisions(shape, config))
        most[one.name] = std::max(most[one.name], one.extent / one.part);
    }
    return most;
  };
  EXPECT_GE(most_parts("attention dtype=f16 out=f16 mask=causal batch=1 heads=4 kv_heads=4 q=64 "
                       "kv=128 dim=64")["kv"],
            12);
  EXPECT_GE(most_parts("gemm dtype=f16 out=f16 m=64 n=64 k=64")["k"], 7);
}

TEST(SmallProblems, AreWithinALimitOfTheirOwn) {
  const Problem problem = Problem::parse("gemm dtype=f32 out=f32 m=64 n=64 k=64").value();
  const Operation& operation = built_in(problem.op);
  const Config config = operation.default_config(problem, device);
  const LaunchPlan plan = operation.plan(problem, device, config).value();
  SmallProblems::Extent extent;
  extent.limit = {1e5, 32 << 10};
  extent.most_threads = 1 << 12;
  const SmallProblems some(operation, problem, device, 1, config, plan, extent);
  const auto few = some.with_kernels_of(config, plan, 5);
  EXPECT_FALSE(few.empty());
  for (const auto& [small, launched] : few) {
    EXPECT_LE(operation.work(small).flops, 1e5) << small.key();
    EXPECT_LE(launched_threads(launched), 1U << 12) << small.key();
  }
}

TEST(SmallProblems, AreThoseOfTheSeed) {
  const char* const key = "gemm dtype=f32 out=f32 m=64 n=64 k=64";
  const auto one = small_problems_of(key), again = small_problems_of(key);
  ASSERT_EQ(one.small.size(), again.small.size());
  for (std::size_t i = 0; i < one.small.size(); ++i) {
    EXPECT_EQ(one.small[i].problem, again.small[i].problem);
  }
}

TEST(SameKernels, AreNotOthers) {
  const auto found = small_problems_of("gemm dtype=f32 out=f32 m=64 n=64 k=64");
  LaunchPlan other = found.plan;
  other.sources[0].text += "// changed\n";
  EXPECT_FALSE(same_kernels(found.plan, other));
  other = found.plan;
  other.sources.push_back(other.sources[0]);
  EXPECT_FALSE(same_kernels(found.plan, other));
  other = found.plan;
  other.launches.clear();
  EXPECT_TRUE(same_kernels(found.plan, other)) << "launches are no kernels";
}

}  // namespace
}  // namespace greta::test::small_problems_test
