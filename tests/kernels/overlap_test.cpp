// Protects: kernels that load their weights before they wait for earlier launches load nothing else
// by then, and say which operands these are. (property_test.cpp has all other kernels.) Templates
// without a call that waits are launched in turn.

#include <gtest/gtest.h>

#include "kernels/planning/plan.hpp"
#include "kernels/sampling/candidates.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/hopper_runner.hpp"
#include "tests/kernels/overlapped_run.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::overlap_test {
namespace {

/// An operation and the variant that loads weights early.
using EarlyVariant = std::pair<const char*, const char*>;

class EarlyWeights : public ::testing::TestWithParam<EarlyVariant> {};
INSTANTIATE_TEST_SUITE_P(Of, EarlyWeights,
                         ::testing::Values(EarlyVariant{"gemm", "gemv"},
                                           EarlyVariant{"scaled_gemm", "gemv"},
                                           EarlyVariant{"quantized_gemm", "gemv"},
                                           EarlyVariant{"quantized_gemm", "digits"},
                                           EarlyVariant{"quantized_gemm", "stream"},
                                           EarlyVariant{"quantized_gemm", "matrix"},
                                           EarlyVariant{"quantized_gemm", "cluster"}),
                         [](const auto& instance) {
                           return std::string(instance.param.first) + "_" + instance.param.second;
                         });

/// Runs a plan in turn and with launches that overlap, and expects the same results.
void expect_same(Device& on, const LaunchPlan& plan, const Operation& operation,
                 const Problem& problem) {
  ASSERT_FALSE(plan.launches[0].early_operands.empty());
  ASSERT_TRUE(plan.sources[0].awaits_launches);
  const auto tensors = operation.tensors(problem);
  const auto inputs = operation.inputs(problem, 3);
  const auto run = test::run_plan(on, plan, tensors, inputs);
  ASSERT_TRUE(run) << run.failure().message;
  const auto early = test::run_overlapped(on, plan, tensors, inputs);
  ASSERT_TRUE(early) << early.failure().message;
  for (const auto& outputs : *early) {
    ASSERT_EQ(outputs.size(), run->outputs.size());
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      EXPECT_TRUE(outputs[i].data == run->outputs[i].data) << outputs[i].spec.name;
    }
  }
}

TEST_P(EarlyWeights, AreAllThatIsReadEarly) {
  const auto& [name, variant] = GetParam();
  const Operation& operation = built_in(name);
  Device& on = test::device("hip-host:0");
  int checked = 0;
  for (const auto& [problem, config] : random_candidates(operation, on.info(), variant, 60, 7)) {
    SCOPED_TRACE(problem.key() + " | " + config.text());
    const LaunchPlan plan = operation.plan(problem, on.info(), config).value();
    // `matrix` for weights in blocks of GGUF is launched in turn.
    if (!plan.sources[0].awaits_launches || ++checked > 2) continue;
    expect_same(on, plan, operation, problem);
  }
  EXPECT_GE(checked, 2);
}

/// Problems and configurations of kernels that only Hopper has.
struct HopperCase {
  const char* name;
  const char* problem;
  const char* config;
};

class EarlyWeightsOfHopper : public ::testing::TestWithParam<HopperCase> {};
INSTANTIATE_TEST_SUITE_P(
    Of, EarlyWeightsOfHopper,
    ::testing::Values(
        HopperCase{
            "tma", "gemm dtype=f16 out=f16 layout=nt m=5 n=300 k=712",
            "tma BM=8 BN=128 BK=64 GROUPS=2 PINGPONG=0 STAGES=3 CLUSTER_M=1 CLUSTER_N=1 RESIDENT=1 "
            "SWIZZLE=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=0 STREAM_K=0"},
        HopperCase{"tma_with_a_counter",
                   "gemm dtype=bf16 out=bf16 layout=nt epilogue=residual m=130 n=264 k=136",
                   "tma BM=64 BN=128 BK=64 GROUPS=1 PINGPONG=0 STAGES=4 CLUSTER_M=1 CLUSTER_N=1 "
                   "RESIDENT=1 "
                   "SWIZZLE=1 WALK=0 SPLIT=1 FOLD=0 ALIGN=0 DYNAMIC=1 STREAM_K=0"},
        HopperCase{"tma_rows",
                   "scaled_gemm dtype=u8 out=f16 format=e4m3 scales=block m=9 n=128 k=1024",
                   "tma_rows BM=16 BN=64 GROUPS=1 STAGES=3 SPLIT=1"}),
    [](const auto& instance) { return instance.param.name; });

TEST_P(EarlyWeightsOfHopper, AreAllThatIsReadEarly) {
  const Problem problem = Problem::parse(GetParam().problem).value();
  const Operation& operation = built_in(problem.op);
  const DeviceInfo hopper = hopper_of(2);
  const Config config = operation.space(problem, hopper).parse(GetParam().config).value();
  LaunchPlan plan = operation.plan(problem, hopper, config).value();
  for (KernelSource& source : plan.sources) source.options.clear();
  expect_same(test::device("hip-host:0"), plan, operation, problem);
}

TEST(AwaitsLaunches, IsReadFromCodeAlone) {
  for (const char* text :
       {"begin_launch();", "{ begin_launch_early();", "x = a / b; begin_launch_alone(); // waits",
        "f() { begin_launch_whole(); }", "/* ends here **/ begin_launch();", "/**/begin_launch();",
        "// to the end\nbegin_launch();", "#include \"/*\"\nbegin_launch();",
        "f(\"\\\"//\"); begin_launch();", "// it's \"open\nbegin_launch();",
        "#error \"open\nbegin_launch();"}) {
    EXPECT_TRUE(awaits_launches(text)) << text;
  }
  for (const char* text :
       {"", "/", "\"", "/*", "//", "no_call();", "// begin_launch();", "/* begin_launch(); */",
        "/*/ begin_launch();", "/* open\n// */\n// begin_launch();",
        "// goes on \\\nbegin_launch();", "f(\"begin_launch();\");", "f(\"\\\"begin_launch();\");",
        "void begin_launch() { /* waits */ }"}) {
    EXPECT_FALSE(awaits_launches(text)) << text;
  }
}

}  // namespace
}  // namespace greta::test::overlap_test
