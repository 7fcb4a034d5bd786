// Protects: counting through VK_KHR_performance_query, with lavapipe and a layer that adds it: the
// order of its calls, passes, units and types of values, what is counted, and why there is nothing.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <vulkan/vulkan_core.h>

#include <cmath>
#include <cstdlib>
#include <limits>

#include "runtime/device/vulkan/vulkan_backend.hpp"
#include "tests/device/counters/fake/fake_queries.hpp"
#include "tests/layers.hpp"

namespace greta::test::performance_query_test {
namespace {

using Values = std::map<std::string, double>;

/// A device with the layer, whose state is new, and a kernel of one thread.
class PerformanceQuery : public testing::Test {
 protected:
  void SetUp() override {
    ::setenv("VK_LAYER_PATH", FAKE_LAYERS, 1);
    ::setenv("VK_INSTANCE_LAYERS", "VK_LAYER_GRETA_fake_queries", 1);
    void* const library = dlopen(FAKE_QUERY_LAYER, RTLD_NOW | RTLD_LOCAL);
    auto* const find = reinterpret_cast<FakeQueries* (*)()>(dlsym(library, "fake_queries"));
    fake = find();
    *fake = FakeQueries();
    fake->driver = VK_DRIVER_ID_INTEL_OPEN_SOURCE_MESA;
  }
  void TearDown() override {
    EXPECT_TRUE(fake->misuse.empty()) << fake->misuse.front();
    EXPECT_EQ(fake->locks, 0);
    EXPECT_EQ(fake->pools, 0);
    ::unsetenv("VK_LAYER_PATH");
    ::unsetenv("VK_INSTANCE_LAYERS");
  }

  void open(bool counters = true) {
    OpenOptions options;
    options.counters = counters;
    backend = vulkan::create_backend();
    device = backend->open(0, options).value();
    KernelSource source;
    source.name = "nothing";
    source.text = "#version 460\nlayout(local_size_x = 1) in;\nvoid main() {}\n";
    kernel = device->compile(source).value();
    stream = device->create_stream().value();
    buffer = device->allocate(4096).value();
  }

  /// Returns work of two launches with 6 and 10 workgroups, after a launch that is not counted.
  CountedWork work() {
    CountedWork work;
    work.stream = stream.get();
    work.prepare = [this](Stream& to) { return to.launch(*kernel, {100, 1, 1}, {}); };
    work.record = [this](Stream& to) -> Result<void> {
      if (auto first = to.launch(*kernel, {2, 3, 1}, {}); !first) return first;
      if (auto filled = to.fill(*buffer, 0, 4096, 1); !filled) return filled;
      return to.launch(*kernel, {10, 1, 1}, {});
    };
    return work;
  }

  std::string refusal() {
    open();
    const auto reader = open_counters(*device);
    return reader ? "no refusal" : reader.failure().message;
  }

  FakeQueries* fake = nullptr;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Device> device;
  std::unique_ptr<Kernel> kernel;
  std::unique_ptr<Stream> stream;
  std::unique_ptr<Buffer> buffer;
};

TEST_F(PerformanceQuery, CountsTheWorkOfEachPassInItsUnitAndType) {
  fake->counters = {{"Groups", VK_PERFORMANCE_COUNTER_UNIT_GENERIC_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR, 0, 1},
                    {"Read", VK_PERFORMANCE_COUNTER_UNIT_BYTES_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_FLOAT64_KHR, 4e9, 0.5},
                    {"Busy", VK_PERFORMANCE_COUNTER_UNIT_PERCENTAGE_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_FLOAT32_KHR, 31.25, 0},
                    {"Time", VK_PERFORMANCE_COUNTER_UNIT_NANOSECONDS_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_INT32_KHR, -5, 0},
                    {"Clocks", VK_PERFORMANCE_COUNTER_UNIT_CYCLES_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_UINT32_KHR, 0, 3},
                    {"Signed", VK_PERFORMANCE_COUNTER_UNIT_HERTZ_KHR,
                     VK_PERFORMANCE_COUNTER_STORAGE_INT64_KHR, -7e12, 0}};
  open();
  EXPECT_TRUE(fake->enabled);
  const auto reader = open_counters(*device).value();
  EXPECT_EQ(reader->source().name, "VK_KHR_performance_query of anv");
  const auto reading = reader
                           ->read({"Clocks [cycles]", "Groups", "Groups [bytes]", "Read [bytes]",
                                   "Busy [%]", "Time [ns]", "Signed [Hz]", "absent"},
                                  work())
                           .value();
  EXPECT_EQ(reading.passes, 3);
  EXPECT_EQ(fake->passes, 3);
  EXPECT_EQ(reading.values, (Values{{"Groups", 16},
                                    {"Read [bytes]", 8e9 + 8},
                                    {"Busy [%]", 62.5},
                                    {"Time [ns]", -10},
                                    {"Clocks [cycles]", 48},
                                    {"Signed [Hz]", -14e12}}));
  // Another reading is counted anew.
  fake->counters_a_pass = 8;
  const auto again = reader->read({"Groups"}, work()).value();
  EXPECT_EQ(again.passes, 1);
  EXPECT_EQ(again.values, (Values{{"Groups", 16}}));
}

TEST_F(PerformanceQuery, WhatIsAmbiguousOrNoNumberIsAbsent) {
  constexpr int f64 = VK_PERFORMANCE_COUNTER_STORAGE_FLOAT64_KHR;
  fake->counters = {
      {"Twice", 0, f64, 1, 0},
      {"Twice", 0, f64, 2, 0},
      {"Ratio", 0, f64, std::numeric_limits<double>::quiet_NaN(), 0},
      {"Of a render pass", 0, f64, 1, 0, VK_PERFORMANCE_COUNTER_SCOPE_RENDER_PASS_KHR},
      {"Of a buffer", 0, f64, 4, 0, VK_PERFORMANCE_COUNTER_SCOPE_COMMAND_BUFFER_KHR}};
  open();
  const auto reader = open_counters(*device).value();
  const auto reading =
      reader->read({"Twice", "Ratio", "Of a render pass", "Of a buffer"}, work()).value();
  EXPECT_EQ(reading.values, (Values{{"Of a buffer", 8}}));
  const auto none = reader->read({"Twice"}, work());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().message,
            "VK_KHR_performance_query of anv has none of the counters that give figures");
}

// The pass is gone afterwards, and commands that follow must not begin its query.
TEST_F(PerformanceQuery, AnExceptionOfTheWorkEndsTheCounting) {
  fake->counters = {{"Groups", 0, VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR, 0, 1}};
  open();
  const auto reader = open_counters(*device).value();
  for (const bool begun : {false, true}) {
    CountedWork fails = work();
    fails.record = [&](Stream& to) -> Result<void> {
      if (begun) to.launch(*kernel, {2, 3, 1}, {}).value();
      throw Error("no work");
    };
    const auto none = reader->read({"Groups"}, fails);
    ASSERT_FALSE(none);
    EXPECT_NE(none.failure().message.find("no work"), std::string::npos);
    stream->fill(*buffer, 0, 4096, 7).value();
    stream->synchronize(std::chrono::seconds(10)).value();
  }
  EXPECT_EQ(fake->passes, 0);
  EXPECT_EQ(reader->read({"Groups"}, work()).value().values, (Values{{"Groups", 16}}));
}

TEST_F(PerformanceQuery, WorkThatCanNotBeCountedIsRefusedAndLeavesNothing) {
  fake->counters = {{"Groups", 0, VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR, 0, 1}};
  open();
  const auto reader = open_counters(*device).value();
  CountedWork split = work();
  split.record = [&](Stream& to) -> Result<void> {
    if (auto first = to.launch(*kernel, {1, 1, 1}, {}); !first) return first;
    return to.submit();
  };
  const auto refused = reader->read({"Groups"}, split);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.failure().status, Status::invalid_argument);
  CountedWork failing = work();
  failing.record = [&](Stream& to) -> Result<void> {
    static_cast<void>(to.launch(*kernel, {1, 1, 1}, {}));
    return Failure{Status::launch, "no", {}};
  };
  EXPECT_FALSE(reader->read({"Groups"}, failing));
  EXPECT_EQ(fake->locks, 0);
  EXPECT_EQ(reader->read({"Groups"}, work()).value().values, (Values{{"Groups", 16}}));
}

TEST_F(PerformanceQuery, SaysWhyThereIsNone) {
  fake->counters = {{"Groups", 0, VK_PERFORMANCE_COUNTER_STORAGE_UINT64_KHR, 0, 1}};
  fake->extension = false;
  EXPECT_NE(refusal().find("lacks VK_KHR_performance_query"), std::string::npos);
  EXPECT_FALSE(fake->enabled);
  fake->extension = true;
  fake->feature = false;
  EXPECT_NE(refusal().find("performanceCounterQueryPools off"), std::string::npos);
  fake->feature = true;
  open(false);
  EXPECT_FALSE(fake->enabled);  // counting may cost time
  EXPECT_NE(open_counters(*device).failure().message.find("not opened to count"),
            std::string::npos);
  fake->lock_result = VK_TIMEOUT;
  open();
  const auto locked = open_counters(*device).value()->read({"Groups"}, work());
  ASSERT_FALSE(locked);
  EXPECT_EQ(locked.failure().status, Status::unavailable);
  EXPECT_NE(locked.failure().message.find("vkAcquireProfilingLockKHR: "), std::string::npos);
}

}  // namespace
}  // namespace greta::test::performance_query_test
