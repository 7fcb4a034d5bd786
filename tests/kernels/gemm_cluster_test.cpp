#include <fmt/format.h>
#include <gtest/gtest.h>

#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

// Protects: FOLD=2 of `matrix`, where the blocks of a cluster add each a share of the rows, and of
// `split_k`, where they add shares of each thread's sums: which ones, where sums are sent, and the
// number of bytes that a block waits for; and that a block says so, in the order of memory, where
// what others send takes the place of its tiles. Only sm_90 has clusters. hip-host runs the kernel
// with mail in their place, which arrives in the next launch.
namespace greta::test::gemm_cluster_test {
namespace {

/// The same names as in common/cluster.hip. A block that gets another number of bytes than it
/// waits for would hang, or go on too early; here it stops.
constexpr std::string_view mail = R"(
#define GRETA_CLUSTER_KERNEL(threads, blocks) GRETA_KERNEL(threads)

struct Mail {  // of a block, in the workspace
  u32 launches, overwritten;
  u32 sent[SHARED_BYTES / 16];
  float four[SHARED_BYTES / 16][4];
};

struct Inbox {
  u64* arrived;  // the bytes to wait for, and where the workspace is

  Mail& of(u32 block) const {
    return reinterpret_cast<Mail*>(arrived[1])[block_index<THREADS>() * SPLIT + block];
  }
  void open_in(float* workspace, u32 bytes) const {
    if (thread_index() != 0) return;
    arrived[0] = bytes;
    arrived[1] = reinterpret_cast<u64>(workspace);
    ++of(block_z()).launches;
  }
  void let_others_send() const {}
  void let_others_overwrite() const {
    if (thread_index() == 0) of(block_z()).overwritten = 1;
  }
  void await_others() const { block_barrier(); }  // behind open()
  void send(u32 block, const float* own, const float (&x)[4]) const {
    const u64 place = u64(reinterpret_cast<const u8*>(own) - reinterpret_cast<const u8*>(arrived));
    Mail& to = of(block);
    if (to.sent[place / 16] != 0) return;
    for (int i = 0; i < 4; ++i) to.four[place / 16][i] = x[i];
    to.sent[place / 16] = 1;
  }
  void receive_in(u32 apart) const {  // `apart`: bytes before the tiles
    block_barrier();
    if (thread_index() == 0) {
      const Mail& mine = of(block_z());
      const u64 expected = arrived[0];
      float* const fours = reinterpret_cast<float*>(arrived);
      u64 bytes = 0;
      for (u32 place = 0; place < SHARED_BYTES / 16; ++place) {
        if (mine.sent[place] == 0) continue;
        if (place * 16 >= apart && mine.overwritten == 0) __builtin_trap();
        bytes += 16;
        for (int i = 0; i < 4; ++i) fours[place * 4 + i] = mine.four[place][i];
      }
      if (mine.launches == 2 && bytes != expected) __builtin_trap();
    }
    block_barrier();
  }
};
#define open(bytes) open_in(partial, bytes)
#define receive() receive_in(inbox_bytes)
)";

/// Replaces what asks for a GPU's clusters.
std::string with_mail(std::string text) {
  const std::size_t begin = text.find("#if !defined(GRETA_NVIDIA)\n#error \"only NVIDIA's GPUs");
  const std::size_t inbox = text.find("struct Inbox {", begin);
  const std::size_t end = text.find("\n};\n", inbox);
  EXPECT_NE(end, std::string::npos) << "common/cluster.hip has changed";
  return text.replace(begin, end + 4 - begin, mail);
}

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

void expect_right(const Problem& problem, const std::string& text) {
  const DeviceInfo hopper = architecture_info("sm_90").value();
  const Operation& gemm = built_in("gemm");
  const auto config = gemm.space(problem, hopper).parse(text);
  ASSERT_TRUE(config) << config.failure().message;
  auto plan = gemm.plan(problem, hopper, *config);
  ASSERT_TRUE(plan) << plan.failure().message;
  ASSERT_EQ(plan->sources.size(), 1U);
  plan->sources[0].options.clear();  // for NVRTC
  plan->sources[0].text = with_mail(plan->sources[0].text);
  constexpr std::size_t partial = 6;  // index into the argument block
  plan->launches[0].arguments[partial] = WorkspaceArgument{0};
  plan->workspace_bytes = plan->zeroed_bytes = 4 << 20;
  const auto tensors = gemm.tensors(problem);
  const auto inputs = gemm.inputs(problem, 1);
  const auto run = test::run_plan(test::device("hip-host:0"), *plan, tensors, inputs, 2);
  ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
  EXPECT_EQ(run->overrun, " counters not reset") << "the mail stays";
  const Verdict verdict = gemm.reference(problem, inputs, 1)->check(run->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

class GemmClusters : public ::testing::TestWithParam<Case> {};

TEST_P(GemmClusters, AddEachRowOnce) {
  const auto& [m, n, k] = GetParam().extents;
  expect_right(
      test::gemm_problem(m, n, k, DType::f16, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("matrix {} VA=8 VB=8 ASYNC=1 SWIZZLE=1 WALK=0 XCDS=1 FOLD=2 ALIGN=0",
                  GetParam().config));
}

INSTANTIATE_TEST_SUITE_P(Shares, GemmClusters, ::testing::ValuesIn(cases()),
                         [](const auto& instance) { return std::string(instance.param.name); });

class SplitClusters : public ::testing::TestWithParam<Case> {};

TEST_P(SplitClusters, AddEachPieceOnce) {
  const auto& [m, n, k] = GetParam().extents;
  expect_right(
      test::gemm_problem(m, n, k, DType::f32, DType::f32, {{"layout", "nt"}, {"epilogue", "bias"}}),
      fmt::format("split_k {} FOLD=2", GetParam().config));
}

INSTANTIATE_TEST_SUITE_P(Shares, SplitClusters, ::testing::ValuesIn(cases_of_split_k()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::gemm_cluster_test
