// Protects: sampling stops when it is precise, out of time or clearly beaten, and never earlier.

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <thread>

#include "tests/layers.hpp"
#include "tuner/measure/clock_warm_up.hpp"
#include "tuner/measure/launch_timer.hpp"
#include "tuner/measure/sampler.hpp"

namespace greta::test::measure_sampler_test {
namespace {

class Source {
 public:
  Source(double us, double noise) : us_(us), noise_(0, noise) {}
  TakeSamples take() {
    return [this](int count) -> Result<std::vector<double>> {
      std::vector<double> samples;
      for (int i = 0; i < count; ++i) samples.push_back(us_ * std::exp(noise_(random_)));
      taken_ += count;
      return samples;
    };
  }
  int taken() const { return taken_; }

 private:
  double us_;
  std::normal_distribution<double> noise_;
  std::mt19937_64 random_{7};
  int taken_ = 0;
};

TEST(Sampler, QuietKernelStopsSoon) {
  Source source(100, 0.001);
  const auto m = sample_until_sure(source.take(), {}).value();
  EXPECT_NEAR(m.median_us, 100, 1);
  EXPECT_GE(m.samples_us.size(), 7U);
  EXPECT_LT(m.samples_us.size(), 40U);
  EXPECT_FALSE(m.raced);
}

TEST(Sampler, NoisyKernelGetsMoreSamplesUntilTheTarget) {
  Source source(100, 0.05);
  const auto m = sample_until_sure(source.take(), {}).value();
  EXPECT_GT(m.samples_us.size(), 40U);
  EXPECT_LE((m.high_us - m.low_us) / m.median_us, 0.02);
  EXPECT_LE(m.low_us, m.median_us);
  EXPECT_GE(m.p99_us, m.high_us);
}

TEST(Sampler, HopelessCandidateLosesTheRaceEarly) {
  Source source(400, 0.01);
  SamplingLimits limits;
  limits.best_us = 100;
  const auto m = sample_until_sure(source.take(), limits).value();
  EXPECT_TRUE(m.raced);
  EXPECT_LE(source.taken(), 2);
}

TEST(Sampler, CloseCandidateIsNotRacedAway) {
  Source source(102, 0.01);
  SamplingLimits limits;
  limits.best_us = 100;
  EXPECT_FALSE(sample_until_sure(source.take(), limits).value().raced);
}

TEST(Sampler, FasterCandidateIsNeverRacedAway) {
  Source source(50, 0.3);
  SamplingLimits limits;
  limits.best_us = 100;
  EXPECT_FALSE(sample_until_sure(source.take(), limits).value().raced);
}

TEST(Sampler, SlowKernelYieldsAtLeastOneSampleWhenTimeIsUp) {
  int calls = 0;
  const auto m = sample_until_sure(
                     [&](int count) -> Result<std::vector<double>> {
                       ++calls;
                       std::this_thread::sleep_for(std::chrono::milliseconds(30));
                       return std::vector<double>(static_cast<std::size_t>(count), 3e4);
                     },
                     {.seconds = 0.02})
                     .value();
  EXPECT_EQ(m.samples_us.size(), 1U);
  EXPECT_EQ(calls, 1);
  EXPECT_DOUBLE_EQ(m.median_us, 3e4);
}

TEST(Sampler, FailureIsPassedOn) {
  const auto failed = sample_until_sure(
      [](int) -> Result<std::vector<double>> {
        return Failure{Status::timeout, "late", {}};
      },
      {});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().status, Status::timeout);
}

TEST(Sampler, SampleCountIsBounded) {
  Source source(100, 0.5);
  SamplingLimits limits;
  limits.maximum = 50;
  EXPECT_LE(sample_until_sure(source.take(), limits).value().samples_us.size(), 50U);
}

// Simulates a device whose clocks are low after a pause and rise under load.
class Sleepy {
 public:
  explicit Sleepy(int work_to_wake) : to_wake_(work_to_wake) {}
  void idle() { worked_ = 0; }
  void heat() { best_us_ = 130; }
  TakeSamples take() {
    return [this](int count) -> Result<std::vector<double>> {
      worked_ += count;
      taken_ += count;
      return std::vector<double>(static_cast<std::size_t>(count),
                                 worked_ > to_wake_ ? best_us_ : 5 * best_us_);
    };
  }
  bool awake() const { return worked_ > to_wake_; }
  int taken() const { return taken_; }

 private:
  int to_wake_;
  double best_us_ = 100;
  int worked_ = 0;
  int taken_ = 0;
};

TEST(Pace, IsReachedAgainAfterEachPause) {
  Sleepy device(20);
  Pace pace;
  ASSERT_TRUE(pace.reach(device.take()));
  EXPECT_TRUE(device.awake());
  const int learnt = device.taken();
  ASSERT_TRUE(pace.reach(device.take()));
  EXPECT_EQ(device.taken(), learnt + 1);  // no pause, no work
  device.idle();
  ASSERT_TRUE(pace.reach(device.take()));
  EXPECT_TRUE(device.awake());
}

TEST(Pace, OfADeviceThatBecameSlowerIsLearntOnce) {
  Sleepy device(20);
  Pace pace;
  ASSERT_TRUE(pace.reach(device.take()));
  device.heat();
  ASSERT_TRUE(pace.reach(device.take()));
  const int learnt = device.taken();
  ASSERT_TRUE(pace.reach(device.take()));
  EXPECT_EQ(device.taken(), learnt + 1);
}

// A device of which some samples of 30, also consecutive ones, are much faster must not be waited
// for.
TEST(Pace, IsNotThatOfRareFastSamples) {
  for (const int fast : {1, 2, 3}) {
    int taken = 0;
    const TakeSamples take = [&](int count) -> Result<std::vector<double>> {
      taken += count;
      return std::vector<double>(static_cast<std::size_t>(count),
                                 taken % 30 < fast ? 110.0 : 116.3);
    };
    Pace pace;
    ASSERT_TRUE(pace.reach(take));
    const int learnt = taken;
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(pace.reach(take));
    EXPECT_LE(taken - learnt, 240) << fast;
  }
}

// Without it, each trial waits until a sample is fast by chance.
TEST(Pace, ThatIsALittleSlowerThanLearntIsAdoptedSoon) {
  double usual_us = 110;
  int taken = 0;
  const TakeSamples take = [&](int count) -> Result<std::vector<double>> {
    taken += count;
    return std::vector<double>(static_cast<std::size_t>(count), taken % 30 == 5 ? 110.0 : usual_us);
  };
  Pace pace;
  ASSERT_TRUE(pace.reach(take));
  EXPECT_EQ(pace.usual_us(), 110);
  usual_us = 116.3;
  const int learnt = taken;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(pace.reach(take));
  EXPECT_EQ(pace.usual_us(), 116.3);
  EXPECT_LE(taken - learnt, 130);
}

TEST(Pace, OfADeviceThatBecameFasterIsLearnt) {
  double us = 130;
  int taken = 0;
  const TakeSamples take = [&](int count) -> Result<std::vector<double>> {
    taken += count;
    return std::vector<double>(static_cast<std::size_t>(count), us);
  };
  Pace pace;
  ASSERT_TRUE(pace.reach(take));
  us = 100;
  ASSERT_TRUE(pace.reach(take));
  us = 130;  // the clocks fell in a pause
  const int before = taken;
  ASSERT_TRUE(pace.reach(take));
  EXPECT_GT(taken, before + 1);
}

TEST(Pace, FailsAsTheKernelDoes) {
  Pace pace;
  const auto reached = pace.reach([](int) -> Result<std::vector<double>> {
    return Failure{Status::device_lost, "gone", {}};
  });
  ASSERT_FALSE(reached);
  EXPECT_EQ(reached.failure().status, Status::device_lost);
}

TEST(WakeUp, KeepsTheHostAheadWhereCommandsAreIssuedOneByOne) {
  DeviceInfo gpu;
  gpu.kind = DeviceKind::discrete_gpu;
  const auto few = wake_up_iterations(gpu, 1);
  EXPECT_GT(few, 0U);
  EXPECT_EQ(wake_up_iterations(gpu, 2000), few);  // a Vulkan submission is submitted as a whole
  gpu.language = Language::hip;
  EXPECT_EQ(wake_up_iterations(gpu, 1), few);
  EXPECT_GT(wake_up_iterations(gpu, 2000), few);
  EXPECT_EQ(wake_up_iterations({}, 2000), 0U);  // a CPU
}

}  // namespace
}  // namespace greta::test::measure_sampler_test
