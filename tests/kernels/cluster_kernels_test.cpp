#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "tests/kernels/planted_fault.hpp"

// Protects: kernels of every variant that has clusters, on hip-host:4, and that hip-host finds what
// is wrong with how their workgroups wait for each other.
namespace greta::test::cluster_kernels_test {
namespace {

struct Kernel {
  const char *problem, *config;
};

void PrintTo(const Kernel& kernel, std::ostream* to) {
  *to << kernel.problem << " | " << kernel.config;
}

constexpr Kernel shared_copies{"gemm dtype=f16 out=f32 layout=nt m=200 n=330 k=264",
                               "tma BM=64 BN=64 BK=64 GROUPS=1 PINGPONG=0 STAGES=2 CLUSTER_M=2 "
                               "CLUSTER_N=2 RESIDENT=1 SWIZZLE=4 "
                               "WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0"};
constexpr Kernel slices_of_weights{
    "quantized_gemm dtype=f16 out=f16 weights=int8 group=\"64\" epilogue=residual m=104 n=40 k=256",
    "tma BM=16 BN=64 GROUPS=1 STAGES=4 SPLIT=2 RESIDENT=0 ROUND=0 SHARES=1"};
constexpr Kernel scaled_slices{
    "scaled_gemm dtype=f16 out=f16 m=5 n=402 k=512",
    "tma BM=64 BN=128 GROUPS=1 STAGES=5 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=0 SWIZZLE=1 STORE=0 "
    "STAGGER=0 SUMS=1 SPLIT=2 FOLD=2"};
constexpr Kernel keys{
    "attention dtype=f16 out=f16 v_dim=\"128\" batch=1 heads=2 kv_heads=1 q=32 "
    "kv=448 dim=40",
    "matrix BK=32 WQ=32 WAVES=1 KWAVES=2 BUFFERS=2 ASYNC=0 QREG=0 PACK=1 SPLIT=3 "
    "FOLD=2 TOGETHER=8 XCDS=1"};
constexpr Kernel rows{"rmsnorm dtype=f16 out=f16 rows=40 cols=1500",
                      "staged THREADS=64 VEC=4 STAY=1 AHEAD=2 CLUSTER=4 KEEP=0"};

constexpr Kernel others[]{
    {"gemm dtype=bf16 out=bf16 layout=nn m=300 n=190 k=200",
     "tma BM=128 BN=64 BK=64 GROUPS=2 PINGPONG=0 STAGES=3 CLUSTER_M=2 CLUSTER_N=1 RESIDENT=0 "
     "SWIZZLE=4 WALK=1 SPLIT=1 FOLD=0 ALIGN=1 DYNAMIC=0 STREAM_K=0"},
    {"scaled_gemm dtype=bf16 out=bf16 m=300 n=400 k=512",
     "tma BM=64 BN=64 GROUPS=1 STAGES=3 CLUSTER_M=2 CLUSTER_N=1 RESIDENT=1 SWIZZLE=1 STORE=1 "
     "STAGGER=0 SUMS=1 SPLIT=1 FOLD=1"},
    {"scaled_gemm dtype=f16 out=f16 m=13 n=300 k=704",
     "tma_rows BM=16 BN=64 GROUPS=1 STAGES=3 SPLIT=2"},
    {"attention dtype=bf16 out=f32 mask=causal batch=2 heads=2 kv_heads=1 q=34 kv=170 dim=64",
     "warpgroups BK=32 GROUPS=1 STAGES=2 PRODUCER=0 TURNS=0 PACK=0 SPLIT=4 FOLD=2 TOGETHER=16"},
};

std::string fault_of(const Kernel& kernel, std::string_view old = {}, std::string_view text = {}) {
  return test::fault_of(catalog().read(kernel.problem).value(), kernel.config, old, text);
}

class ClusterKernels : public ::testing::TestWithParam<Kernel> {};

TEST_P(ClusterKernels, AreRight) {
  EXPECT_EQ(fault_of(GetParam()), "");
}

std::string variant_of(const ::testing::TestParamInfo<Kernel>& instance) {
  const std::string problem = instance.param.problem, config = instance.param.config;
  return problem.substr(0, problem.find(' ')) + "_" + config.substr(0, config.find(' ')) + "_" +
         std::to_string(instance.index);
}

INSTANTIATE_TEST_SUITE_P(Of, ClusterKernels,
                         ::testing::Values(shared_copies, slices_of_weights, scaled_slices, keys,
                                           rows, others[0], others[1], others[2], others[3]),
                         variant_of);

struct Fault {
  const char* name;
  Kernel kernel;
  std::string_view old, text;
};

void PrintTo(const Fault& fault, std::ostream* to) {
  *to << fault.name;
}

const Fault faults[]{
    {"others_are_not_awaited", shared_copies, "__syncwarp();\n  cluster_barrier_relaxed();",
     "block_barrier();"},
    {"barriers_are_not_shown", shared_copies, "turn_of(group).open(4);\n    show_barriers();",
     "turn_of(group).open(4);"},
    {"a_block_ends_early", shared_copies, "if (CLUSTER > 1) stages.drain();", ""},
    {"operands_are_released_early", shared_copies,
     "wait_for_products<1>();\n    at.release(before, rank);",
     "at.release(before, rank);\n    wait_for_products<1>();"},
    {"sums_are_not_shown", slices_of_weights, "totals);\n#if SPLIT > 1\n  cluster_barrier();",
     "totals);\n#if SPLIT > 1\n  cluster_barrier_relaxed();"},
    {"scaled_sums_are_not_shown", scaled_slices, "cluster_barrier();\n    const Total* of_slice",
     "cluster_barrier_relaxed();\n    const Total* of_slice"},
    {"weights_of_keys_are_not_shown", keys, "cluster_barrier();\n  OwnJoin::join",
     "cluster_barrier_relaxed();\n  OwnJoin::join"},
    {"values_of_keys_end_early", keys,
     "cluster_barrier();  // the others have read this workgroup's sums", ""},
    {"statistics_of_the_row_before", rows, "inbox(which).receive(exchange / 2 % 2);",
     "inbox(which).receive(0);"},
};

class ClusterFaults : public ::testing::TestWithParam<Fault> {};

TEST_P(ClusterFaults, AreFound) {
  const Fault& fault = GetParam();
  EXPECT_NE(fault_of(fault.kernel, fault.old, fault.text), "");
}

INSTANTIATE_TEST_SUITE_P(Of, ClusterFaults, ::testing::ValuesIn(faults),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace greta::test::cluster_kernels_test
