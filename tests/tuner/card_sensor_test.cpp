// Protects: clocks, power, energy, temperature and the reasons of throttling are read through NVML,
// AMD SMI or ROCm SMI (replaced by tests/tuner/management), and the energy of a launch at the
// counter's updates.

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/layers.hpp"
#include "tuner/measure/clocks.hpp"
#include "tuner/measure/energy_meter.hpp"

namespace greta::test::card_sensor_test {
namespace {

const std::string nvidia = "0000:01:00.0", amd = "000a:03:00.0", rocm = "000b:03:00.0";

TEST(CardSensors, EachLibraryKnowsItsCards) {
  const std::pair<std::string, std::string> known[] = {
      {nvidia, "NVML"}, {amd, "AMD SMI"}, {rocm, "ROCm SMI"}};
  for (const auto& [address, name] : known) {
    CardSensor* const sensor = card_sensor(address);
    ASSERT_NE(sensor, nullptr) << address;
    EXPECT_EQ(sensor->name(), name);
    EXPECT_EQ(card_sensor(address), sensor);
    EXPECT_TRUE(sensor->joules());
  }
  EXPECT_EQ(card_sensor("0000:02:00.0"), nullptr);
  EXPECT_EQ(card_sensor(""), nullptr);
  EXPECT_EQ(card_sensor("not an address"), nullptr);
}

TEST(CardSensors, WhatTheyReport) {
  const auto reading = card_sensor(nvidia)->read();
  EXPECT_EQ(reading.sm_mhz, 1980);
  EXPECT_EQ(reading.memory_mhz, 3201);
  EXPECT_EQ(reading.state.watts, 300);
  EXPECT_EQ(reading.state.celsius, 61);
  EXPECT_EQ(read_conditions(nvidia).clocks, "SM 1980 MHz, memory 3201 MHz");
  EXPECT_EQ(card_sensor(amd)->read().state.celsius, 55);
  EXPECT_FALSE(card_sensor(amd)->read().state.watts) << "its struct differs between versions";
  EXPECT_EQ(card_sensor(rocm)->read().state.watts, 300);
  EXPECT_EQ(card_sensor(rocm)->read().state.celsius, 47);
  EXPECT_EQ(read_conditions("0000:02:00.0").state, CardState());
}

TEST(CardSensors, ThrottlingIsNamed) {
  EXPECT_EQ(throttle_reasons(0), "");
  EXPECT_EQ(throttle_reasons(0x1 | 0x2 | 0x10 | 0x100), "") << "idle, or as the user wants it";
  EXPECT_EQ(throttle_reasons(0x4), "power cap");
  EXPECT_EQ(throttle_reasons(0x4 | 0x20 | 0x40), "power cap, thermal");
  EXPECT_EQ(throttle_reasons(0x80 | 0x8), "power brake, hardware slowdown");
  setenv("GRETA_FAKE_THROTTLE", "0x44", 1);
  EXPECT_EQ(read_conditions(nvidia).state.throttled, "power cap, thermal");
  unsetenv("GRETA_FAKE_THROTTLE");
}

TEST(CardSensors, AreReadAgainAfterAWhile) {
  using namespace std::chrono_literals;
  RecentConditions conditions(50ms);
  EXPECT_EQ(conditions.latest(nvidia).state.throttled, "");
  setenv("GRETA_FAKE_THROTTLE", "0x4", 1);
  EXPECT_EQ(conditions.latest(amd).state.celsius, 55) << "of another card";
  EXPECT_EQ(conditions.latest(nvidia).state.throttled, "power cap");
  unsetenv("GRETA_FAKE_THROTTLE");
  std::this_thread::sleep_for(60ms);
  EXPECT_EQ(conditions.latest(nvidia).state.throttled, "");
  RecentConditions lasting(1h);
  EXPECT_EQ(lasting.latest(nvidia).state.throttled, "");
  setenv("GRETA_FAKE_THROTTLE", "0x4", 1);
  EXPECT_EQ(lasting.latest(nvidia).state.throttled, "");
  unsetenv("GRETA_FAKE_THROTTLE");
}

TEST(EnergyMeter, PowerTimesTheTimeOfALaunch) {
  int launches = 0;
  const auto launch = [&](int count) -> Result<void> {
    launches += count;
    std::this_thread::sleep_for(std::chrono::microseconds(200) * count);
    return {};
  };
  // Beside other work, a pause between a launch and a reading is an error of the sensor.
  auto block = measure_block(*card_sensor(nvidia), launch, 0.3);
  while (block && block->sensor_error > 0.2 * block->joules) {
    launches = 0;
    block = measure_block(*card_sensor(nvidia), launch, 0.3);
  }
  ASSERT_TRUE(block);
  EXPECT_GT(launches, 100);
  EXPECT_NEAR(block->watts, 300, 300 * block->sensor_error / block->joules);
  EXPECT_DOUBLE_EQ(block->joules, block->watts * block->us * 1e-6);
  EXPECT_GT(block->sensor_error, 0);
}

TEST(EnergyMeter, ACounterThatStandsStillIsNoMeasurement) {
  class Still : public CardSensor {
   public:
    CardReading read() override { return {}; }
    std::optional<double> joules() override { return 1; }
    std::string name() const override { return "still"; }
  } sensor;
  const auto wait = [](int) -> Result<void> {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return {};
  };
  const auto block = measure_block(sensor, wait, 0.1);
  ASSERT_FALSE(block);
  EXPECT_EQ(block.failure().status, Status::unavailable);
  const auto fails = [](int) -> Result<void> { return Failure{Status::timeout, "planted", {}}; };
  EXPECT_EQ(measure_block(sensor, fails, 0.1).failure().status, Status::timeout);
}

TEST(EnergyMeter, BoundsContainEveryBlockAndTheSensorsError) {
  const Energy energy =
      summarise({{1.0, 10, 300, 0.01}, {1.1, 10, 310, 0.02}, {0.9, 10, 290, 0.1}}, "X");
  EXPECT_DOUBLE_EQ(energy.joules, 1.0);
  EXPECT_DOUBLE_EQ(energy.low, 0.8);
  EXPECT_DOUBLE_EQ(energy.high, 1.12);
  EXPECT_DOUBLE_EQ(energy.watts, 300);
  EXPECT_EQ(energy.source, "X energy counter");
}

}  // namespace
}  // namespace greta::test::card_sensor_test
