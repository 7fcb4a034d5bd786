// Protects: rounds average kernels that are too short for the device's clock over several launches,
// like the search does, and time every candidate once per round.

#include "tuner/evaluate/round_timer.hpp"

#include <gtest/gtest.h>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tests/tuner/tiny_kernel.hpp"

namespace greta::test::round_timer_test {
namespace {

/// A candidate that counts its launches in its only operand.
class RoundTimerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::byte> zero(4);
    HostTensor none{spec_, zero};
    operands_.upload(*device_, 0, none).value();
  }
  PreparedPlan counting() {
    return PreparedPlan::create(
               *device_, test::tiny_plan(device_->info(), "C(0) += 1.0;", 1), operands_,
               [&](const KernelSource& source) { return device_->compile(source); })
        .value();
  }
  double launches() {
    std::vector<HostTensor> outputs;
    operands_.download_outputs(*device_, outputs).value();
    return outputs.front().at(0);
  }

  /// Times rounds of one candidate on a device with this clock period.
  Rounds run(double period_ns, int rounds) {
    DeviceInfo info = device_->info();
    info.timestamp_period_ns = period_ns;
    RoundTimer rounds_of(info);
    std::vector<PreparedPlan> candidates;
    candidates.push_back(counting());
    const Config config{"tiny", {}};
    rounds_of.set({config}, std::move(candidates));
    EXPECT_TRUE(rounds_of.holds({config}));
    return rounds_of.run(timer_, rounds, 60, 1, {});
  }

  std::unique_ptr<Device> device_ = open_device("auto", {}).value();
  TensorSpec spec_{"C", Role::output, DType::f32, 1, 1};
  Operands operands_ = Operands::create(*device_, {spec_}).value();
  LaunchTimer timer_ = LaunchTimer::create(*device_, 0).value();
};

TEST_F(RoundTimerTest, AFineClockNeedsOneLaunchARound) {
  const Rounds rounds = run(1e-3, 5);
  ASSERT_FALSE(rounds.failure);
  EXPECT_EQ(rounds.batch, std::vector<int>{1});
  EXPECT_EQ(launches(), 5);
  EXPECT_EQ(rounds.us[0].size() + static_cast<std::size_t>(rounds.dropped), 5U);
}

TEST_F(RoundTimerTest, ACoarseClockGetsBatchesAndTheRoundThatShowedItDoesNotCount) {
  const Rounds rounds = run(1e9, 3);  // a tick per second: longer than a launch on a busy machine
  ASSERT_FALSE(rounds.failure);
  ASSERT_EQ(rounds.batch, std::vector<int>{64});
  EXPECT_EQ(launches(), 1 + 3 * 64);
  EXPECT_EQ(rounds.us[0].size() + static_cast<std::size_t>(rounds.dropped), 3U);
  for (const double us : rounds.us[0]) EXPECT_GT(us, 0);
}

}  // namespace
}  // namespace greta::test::round_timer_test
