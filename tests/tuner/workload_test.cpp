// Protects: a candidate's check does not depend on what the candidate before left in the operands,
// and watches all that a candidate may write. Runs on whatever device "auto" is.

#include "tuner/evaluate/workload.hpp"

#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "tests/catalog.hpp"
#include "tests/layers.hpp"
#include "tests/tuner/tiny_kernel.hpp"

namespace greta::test::workload_test {
namespace {

constexpr std::size_t elements = 5 * 7;

class WorkloadTest : public ::testing::Test {
 protected:
  void use(const char* key) {
    problem_ = Problem::parse(key).value();
    workload_ = Workload::create(*device_, operation_, problem_).value();
    workload_->set_inputs(*device_, 1, InputStyle::plain).value();
  }

  LaunchPlan right_plan() const {
    const auto config = operation_.default_config(problem_, device_->info());
    return operation_.plan(problem_, device_->info(), config).value();
  }

  /// The right plan, and then a launch with C(i) at `target`.
  LaunchPlan plan_and(const std::string& body, const Argument& target, std::uint32_t count) const {
    LaunchPlan plan = right_plan();
    const LaunchPlan tiny = tiny_plan(device_->info(), body, count);
    plan.launches.push_back({plan.sources.size(), {1, 1, 1}, {target, count}});
    plan.sources.push_back(tiny.sources.front());
    return plan;
  }

  /// What is wrong with a plan; empty if it passes.
  std::string check(const LaunchPlan& plan) {
    const auto compile = [&](const KernelSource& source) { return device_->compile(source); };
    const auto candidate =
        PreparedPlan::create(*device_, plan, workload_->operands(), compile).value();
    Verdict verdict;
    const auto done = workload_->check(*device_, *stream_, candidate, 20, verdict);
    EXPECT_EQ(static_cast<bool>(done), verdict.passed);
    if (done) return "";
    EXPECT_EQ(done.failure().status, Status::correctness);
    return done.failure().message;
  }

  const Operation& operation_ = built_in("softmax");
  std::unique_ptr<Device> device_ = open_device("auto", {}).value();
  std::unique_ptr<Stream> stream_ = device_->create_stream().value();
  Problem problem_;
  std::optional<Workload> workload_;
};

TEST_F(WorkloadTest, WhatWritesNothingFailsAfterARightCandidate) {
  use("softmax dtype=f32 out=f32 rows=5 cols=7");
  EXPECT_EQ(check(right_plan()), "");
  EXPECT_NE(check(tiny_plan(device_->info(), "", elements)), "");
}

TEST_F(WorkloadTest, WhatIsWrittenInPlaceIsTheInputAgain) {
  use("softmax dtype=f32 out=f32 place=in rows=5 cols=7");
  EXPECT_EQ(check(right_plan()), "");
  EXPECT_EQ(check(right_plan()), "");
  EXPECT_NE(check(tiny_plan(device_->info(), "", elements)), "");
}

TEST_F(WorkloadTest, GuardsOfOperandsAreWatched) {
  use("softmax dtype=f32 out=f32 rows=5 cols=7");
  EXPECT_EQ(check(plan_and("C(count) = 1.0;", OperandArgument{1}, elements)),
            "wrote past the end of tensor Y, first at byte 1 after it");
}

TEST_F(WorkloadTest, GuardsOfTheWorkspaceAreWatched) {
  use("softmax dtype=f32 out=f32 rows=5 cols=7");
  LaunchPlan plan = plan_and("C(count) = 1.0;", WorkspaceArgument{0}, 16);
  ASSERT_EQ(plan.workspace_bytes, 0U);
  plan.workspace_bytes = 64;
  EXPECT_EQ(check(plan), "wrote past the end of the workspace, first at byte 1 after it");
}

TEST_F(WorkloadTest, CountersMustBeLeftZero) {
  use("softmax dtype=f32 out=f32 rows=5 cols=7");
  LaunchPlan plan = plan_and("C(0) = 1.0;", WorkspaceArgument{0}, 16);
  plan.workspace_bytes = plan.zeroed_bytes = 64;
  EXPECT_NE(check(plan).find("left counters"), std::string::npos);
  plan.zeroed_bytes = 0;
  EXPECT_EQ(check(plan), "");
}

}  // namespace
}  // namespace greta::test::workload_test
