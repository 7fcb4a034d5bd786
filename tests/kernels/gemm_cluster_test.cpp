#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: FOLD=2 of `matrix`, where the blocks of a cluster add each a share of the rows, and of
// `split_k`, where they add shares of each thread's sums: which ones, where sums are sent, and the
// number of bytes that a block waits for; and that hip-host finds a block that does not wait for
// others, or does not say in the order of memory that what they send may take the place of its
// tiles.
namespace greta::test::gemm_cluster_test {
namespace {

struct Case {
  const char* name;
  std::array<std::int64_t, 3> extents;
  const char* config;
};

void PrintTo(const Case& c, std::ostream* to) {
  *to << c.name;
}

std::vector<Case> cases() {
  return {
      {"equal_shares_of_waves",
       {30, 70, 264},
       "BM=32 BN=64 WM=16 WN=32 BK=32 INSTR=16 PAD=0 STAGES=2 FRAGMENTS=1 SPLIT=4"},
      {"three_shares_in_front_of_the_tiles",
       {15, 96, 264},
       "BM=16 BN=64 WM=16 WN=64 BK=64 INSTR=64 PAD=0 STAGES=3 FRAGMENTS=1 SPLIT=3"},
      {"five_shares_behind_the_own_sums",
       {70, 120, 392},
       "BM=64 BN=128 WM=64 WN=128 BK=64 INSTR=64 PAD=0 STAGES=3 FRAGMENTS=1 SPLIT=5"},
      {"six_shares_of_80_columns",
       {101, 78, 392},
       "BM=128 BN=80 WM=64 WN=128 BK=64 INSTR=64 PAD=0 STAGES=3 FRAGMENTS=1 SPLIT=6"},
      {"seven_shares_of_24_rows",
       {24, 64, 456},
       "BM=24 BN=64 WM=32 WN=64 BK=64 INSTR=64 PAD=0 STAGES=3 FRAGMENTS=1 SPLIT=7"},
  };
}

std::vector<Case> cases_of_split_k() {
  return {
      {"two_shares_of_four_pieces",
       {30, 70, 70},
       "BM=32 BN=32 TM=4 TN=4 LX=8 BK=8 STAGES=3 PAD=0 VA=1 VB=1 UNROLL=8 SWIZZLE=1 ORDER=0 "
       "TRANSPOSE=0 "
       "SPLIT=2"},
      {"three_shares_before_the_tiles",
       {70, 61, 100},
       "BM=32 BN=64 TM=8 TN=8 LX=8 BK=16 STAGES=4 PAD=4 VA=1 VB=1 UNROLL=16 SWIZZLE=1 ORDER=1 "
       "TRANSPOSE=0 "
       "SPLIT=3"},
      {"eight_shares_over_the_tiles",
       {97, 130, 260},
       "BM=96 BN=64 TM=8 TN=8 LX=8 BK=16 STAGES=2 PAD=4 VA=1 VB=1 UNROLL=16 SWIZZLE=1 ORDER=3 "
       "TRANSPOSE=0 "
       "SPLIT=8"},
      {"five_shares_and_an_empty_slice",
       {64, 48, 64},
       "BM=64 BN=48 TM=8 TN=4 LX=4 BK=8 STAGES=1 PAD=4 VA=1 VB=1 UNROLL=4 SWIZZLE=1 ORDER=2 "
       "TRANSPOSE=0 "
       "SPLIT=5"},
  };
}

/// A configuration and a problem for it.
struct Kernel {
  Problem problem;
  Config config;
};

Kernel kernel_of(const Problem& problem, const std::string& text) {
  return {problem,
          built_in("gemm").space(problem, device("hip-host:4").info()).parse(text).value()};
}

Kernel of_matrix(const Case& c) {
  const auto& [m, n, k] = c.extents;
  return kernel_of(
      gemm_problem(m, n, k, DType::f16, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("matrix {} VA=8 VB=8 ASYNC=1 SWIZZLE=1 WALK=0 XCDS=1 FOLD=2 ALIGN=0", c.config));
}

Kernel of_split_k(const Case& c) {
  const auto& [m, n, k] = c.extents;
  return kernel_of(
      gemm_problem(m, n, k, DType::f32, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("split_k {} FOLD=2", c.config));
}

/// Runs a kernel, in whose text `old`, unless it is empty, becomes `text`. Returns what is wrong.
std::string fault_of(const Kernel& kernel, std::string_view old = {}, std::string_view text = {}) {
  const Operation& gemm = built_in("gemm");
  Device& on = device("hip-host:4");
  LaunchPlan plan = gemm.plan(kernel.problem, on.info(), kernel.config).value();
  EXPECT_EQ(plan.sources.size(), 1U);
  if (!old.empty()) {
    std::string& source = plan.sources[0].text;
    const std::size_t at = source.find(old);
    EXPECT_NE(at, std::string::npos) << "the template has changed";
    if (at == std::string::npos) return {};
    source.replace(at, old.size(), text);
  }
  const auto inputs = gemm.inputs(kernel.problem, 1);
  const auto run = run_plan(on, plan, gemm.tensors(kernel.problem), inputs, 2);
  if (!run) return run.failure().message;
  if (!run->overrun.empty()) return run->overrun;
  const Verdict verdict = gemm.reference(kernel.problem, inputs, 1)->check(run->outputs);
  return verdict.passed ? std::string() : verdict.detail;
}

class GemmClusters : public ::testing::TestWithParam<Case> {};

TEST_P(GemmClusters, AddEachRowOnce) {
  EXPECT_EQ(fault_of(of_matrix(GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Shares, GemmClusters, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

class SplitClusters : public ::testing::TestWithParam<Case> {};

TEST_P(SplitClusters, AddEachPieceOnce) {
  EXPECT_EQ(fault_of(of_split_k(GetParam())), "");
}

INSTANTIATE_TEST_SUITE_P(Shares, SplitClusters, ::testing::ValuesIn(cases_of_split_k()),
                         [](const auto& instance) { return std::string(instance.param.name); });

constexpr std::string_view overwrite = "void let_others_overwrite() const { cluster_arrive(); }";

// On an H200, the block's last stores to its tiles came after what others had sent there.
TEST(GemmClusterFaults, StoresThatComeAfterWhatIsSentAreFound) {
  constexpr std::string_view relaxed =
      "void let_others_overwrite() const { cluster_arrive_relaxed(); }";
  EXPECT_NE(fault_of(of_matrix(cases()[2]), overwrite, relaxed), "");
  EXPECT_NE(fault_of(of_split_k(cases_of_split_k()[2]), overwrite, relaxed), "");
}

TEST(GemmClusterFaults, SumsThatAreSentTooEarlyAreFound) {
  constexpr std::string_view wait = "void await_others() const { cluster_wait(); }";
  for (const Kernel& kernel : {of_matrix(cases()[0]), of_split_k(cases_of_split_k()[2])}) {
    EXPECT_NE(fault_of(kernel, wait, "void await_others() const {}"), "") << kernel.config.text();
  }
}

}  // namespace
}  // namespace greta::test::gemm_cluster_test
