// Protects: a case of a wrong kernel can be read again however large its outputs are, and a slow
// kernel has a case with the runs for which there is time.

#include "tuner/diagnose/failed_case.hpp"

#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/temporary_folder.hpp"
#include "tests/tuner/tiny_kernel.hpp"
#include "tuner/compile/compiled_choice.hpp"
#include "tuner/diagnose/probe.hpp"
#include "tuner/evaluate/failure_keeper.hpp"

namespace greta::test::failed_case_test {
namespace {

// All probes of a product of 1024 x 1024 x 1024: 80 times 2^20 marks.
TEST(FailedCase, OfALargeOutputIsReadAsItWasWritten) {
  const Operation& gemm = built_in("gemm");
  const Problem problem = Problem::parse("gemm dtype=f16 out=f16 m=1024 n=1024 k=1024").value();
  const auto specs = gemm.tensors(problem);
  LaunchPlan plan;
  plan.sources.emplace_back();
  FailedCase made;
  made.kernel = make_case_of(gemm, CompiledChoice{{problem, {"naive", {}}}, "gfx942", plan, {}},
                             {random_tensor(specs[0], 1), random_tensor(specs[1], 2)},
                             {std::vector<Expected>(specs[2].elements(), Expected{0.5, 0.25})});
  made.runs.push_back({.outputs = {random_tensor(specs[2], 3)}});
  for (const TensorSpec& operand : {specs[0], specs[1]}) {
    const auto probes = probes_of(operand);
    made.probes.insert(made.probes.end(), probes.begin(), probes.end());
  }
  ASSERT_EQ(made.probes.size(), 80U);
  for (std::size_t p = 0; p < made.probes.size(); ++p) {
    auto& marks = made.probes[p].changed.emplace_back(specs[2].elements());
    for (std::size_t i = p; i < marks.size(); i += 3 + p) marks[i] = true;
  }
  const TemporaryFolder folder;
  write_failed_case(made, folder.path() / "case").value();
  const FailedCase read = read_failed_case(catalog(), folder.path() / "case").value();
  ASSERT_EQ(read.probes.size(), made.probes.size());
  for (std::size_t p = 0; p < read.probes.size(); ++p) {
    EXPECT_EQ(read.probes[p].operand, made.probes[p].operand);
    EXPECT_EQ(read.probes[p].bit, made.probes[p].bit);
    EXPECT_TRUE(read.probes[p].changed == made.probes[p].changed) << p;
  }
}

TEST(FailedCase, WithMarksOfOtherOutputsIsRefused) {
  auto probes = probes_of({"A", Role::input, DType::f16, 4, 4});
  const TensorSpec output{"C", Role::output, DType::f16, 3, 3};
  const std::vector<std::byte> marks(probes.size() * mark_bytes({output}) - 1);
  EXPECT_THROW(set_marks(probes, {output}, marks), Error);
}

/// Keeps a kernel that writes nothing.
FailedCase kept_in(std::chrono::nanoseconds time) {
  const TemporaryFolder folder;
  const Operation& softmax = built_in("softmax");
  const Problem problem = Problem::parse("softmax dtype=f32 out=f32 rows=5 cols=7").value();
  const auto device = open_device("auto", {}).value();
  const auto stream = device->create_stream().value();
  const auto load = Workload::create(*device, softmax, problem).value();
  const LaunchPlan plan = tiny_plan(device->info(), "", 5 * 7);
  const auto candidate =
      PreparedPlan::create(*device, plan, load.operands(), [&](const KernelSource& source) {
        return device->compile(source);
      }).value();
  FailureKeeper keeper(folder.path(), {}, time);
  const Config config = softmax.default_config(problem, device->info());
  keeper.keep(*device, device->info(), *stream, softmax,
              {{problem, config}, problem, plan, 1, InputStyle::plain, "wrong"}, candidate, 20);
  return read_failed_case(catalog(),
                          folder.path() / name_of_failed_case(problem.key(), config.text()))
      .value();
}

TEST(FailedCase, HasTheRunsForWhichThereIsTime) {
  const FailedCase whole = kept_in(FailureKeeper::usual_time);
  ASSERT_EQ(whole.runs.size(), 9U);
  EXPECT_NE(whole.runs.back().outputs_before, whole.runs.front().outputs_before);
  EXPECT_EQ(whole.runs[7].outputs_before, whole.runs.front().outputs_before);
  EXPECT_FALSE(whole.probes.empty());
  const FailedCase hurried = kept_in(std::chrono::nanoseconds(0));
  EXPECT_EQ(hurried.runs.size(), 1U);
  EXPECT_TRUE(hurried.probes.empty());
}

}  // namespace
}  // namespace greta::test::failed_case_test
