#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/planted_fault.hpp"

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

/// Runs a case of `matrix` or of `split_k`, as fault_of() does.
std::string fault_of_matrix(const Case& c, std::string_view old = {}, std::string_view text = {}) {
  const auto& [m, n, k] = c.extents;
  return fault_of(
      gemm_problem(m, n, k, DType::f16, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("matrix {} VA=8 VB=8 ASYNC=1 SWIZZLE=1 WALK=0 XCDS=1 FOLD=2 ALIGN=0", c.config),
      old, text);
}

std::string fault_of_split_k(const Case& c, std::string_view old = {}, std::string_view text = {}) {
  const auto& [m, n, k] = c.extents;
  return fault_of(
      gemm_problem(m, n, k, DType::f32, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("split_k {} FOLD=2", c.config), old, text);
}

class GemmClusters : public ::testing::TestWithParam<Case> {};

TEST_P(GemmClusters, AddEachRowOnce) {
  EXPECT_EQ(fault_of_matrix(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Shares, GemmClusters, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

class SplitClusters : public ::testing::TestWithParam<Case> {};

TEST_P(SplitClusters, AddEachPieceOnce) {
  EXPECT_EQ(fault_of_split_k(GetParam()), "");
}

INSTANTIATE_TEST_SUITE_P(Shares, SplitClusters, ::testing::ValuesIn(cases_of_split_k()),
                         [](const auto& instance) { return std::string(instance.param.name); });

// On an H200, the block's last stores to its tiles came after what others had sent there.
TEST(GemmClusterFaults, StoresThatComeAfterWhatIsSentAreFound) {
  constexpr std::string_view ordered = "void let_others_overwrite() const { cluster_arrive(); }";
  constexpr std::string_view relaxed =
      "void let_others_overwrite() const { cluster_arrive_relaxed(); }";
  EXPECT_NE(fault_of_matrix(cases()[2], ordered, relaxed), "");
  EXPECT_NE(fault_of_split_k(cases_of_split_k()[2], ordered, relaxed), "");
}

TEST(GemmClusterFaults, SumsThatAreSentTooEarlyAreFound) {
  constexpr std::string_view waits = "void await_others() const { cluster_wait(); }";
  constexpr std::string_view goes_on = "void await_others() const {}";
  EXPECT_NE(fault_of_matrix(cases()[0], waits, goes_on), "");
  EXPECT_NE(fault_of_split_k(cases_of_split_k()[2], waits, goes_on), "");
}

}  // namespace
}  // namespace greta::test::gemm_cluster_test
