// Protects: counting through rocprofiler-sdk: it is configured once before anything else, passes
// take as many counters as the hardware counts, values of instances, dispatches and passes are put
// together rightly, only the work's dispatches are counted, and refusals are one line.

#include "runtime/device/counters/rocprofiler.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "tests/counted_stream.hpp"
#include "tests/device/counters/fake/fake_rocprofiler.hpp"
#include "tests/layers.hpp"

namespace greta::test::rocprofiler_test {
namespace {

using Values = std::map<std::string, double>;

/// Opens the fake library in its initial state, with a few counters of two shader engines.
FakeRocprofiler& open_fake_rocprofiler() {
  void* const library = dlopen(FAKE_ROCPROFILER, RTLD_NOW | RTLD_LOCAL);
  auto* const find = reinterpret_cast<FakeRocprofiler* (*)()>(dlsym(library, "fake_rocprofiler"));
  FakeRocprofiler& fake = *find();
  fake.settle();
  fake = FakeRocprofiler();
  fake.counters = {{"GRBM_GUI_ACTIVE", {900, 1000}},
                   {"SQ_WAVES", {10, 30}},
                   {"SQ_INSTS", {100, 200}},
                   {"TCC_HIT", {1, 2, 3, 4}}};
  return *find();
}

rocprofiler::Session& session() {
  return **rocprofiler::configure({FAKE_ROCPROFILER});
}

/// Work of some dispatches, after a flush of one dispatch.
CountedWork work_of(CountedStream& stream, FakeRocprofiler& fake, int dispatches) {
  CountedWork work;
  work.stream = &stream;
  work.prepare = [&fake](Stream&) {
    fake.dispatch(1);
    return Result<void>();
  };
  work.record = [&fake, dispatches](Stream&) {
    for (int i = 0; i < dispatches; ++i) fake.dispatch(1);
    fake.dispatch(2);  // of another GPU
    return Result<void>();
  };
  return work;
}

constexpr const char* address = "0000:c1:00.0";

TEST(Rocprofiler, AddsInstancesAndDispatches) {
  FakeRocprofiler& fake = open_fake_rocprofiler();
  fake.agents.push_back({.handle = 2, .location = 0xc200});
  const auto reader = rocprofiler::open(session(), {address, "gfx90a"}).value();
  EXPECT_EQ(reader->source(), (CounterSource{"rocprofiler-sdk 1.0", "gfx90a"}));
  EXPECT_TRUE(fake.started);
  CountedStream stream;
  const auto reading =
      reader
          ->read({"SQ_WAVES.sum", "GRBM_GUI_ACTIVE.max", "GRBM_GUI_ACTIVE.sum", "TCC_HIT.sum",
                  "dispatch.ns", "agent.cu_count", "agent.simd_per_cu", "agent.max_waves_per_simd",
                  "dram__bytes_read.sum", "SQ_WAVES", "SQ_NOTHING.sum"},
                 work_of(stream, fake, 3))
          .value();
  EXPECT_EQ(reading.passes, 1);
  // Three dispatches: sums of all instances, and the largest instance of each dispatch.
  EXPECT_EQ(reading.values, (Values{{"SQ_WAVES.sum", 120},
                                    {"GRBM_GUI_ACTIVE.max", 3000},
                                    {"GRBM_GUI_ACTIVE.sum", 5700},
                                    {"TCC_HIT.sum", 30},
                                    {"dispatch.ns", 7500},
                                    {"agent.cu_count", 104},
                                    {"agent.simd_per_cu", 4},
                                    {"agent.max_waves_per_simd", 8}}));
  EXPECT_EQ(fake.counted.size(), 3U);
  EXPECT_EQ(fake.ignored, 2);  // the flush, and the other GPU
  EXPECT_EQ(fake.sets, 0);
  EXPECT_TRUE(fake.misuse.empty()) << fake.misuse.front();
}

TEST(Rocprofiler, TakesAsManyPassesAsTheHardwareNeeds) {
  FakeRocprofiler& fake = open_fake_rocprofiler();
  fake.most_a_pass = 2;
  fake.not_countable = {"SQ_INSTS"};
  const auto reader = rocprofiler::open(session(), {address, "gfx90a"}).value();
  CountedStream stream;
  const auto reading = reader
                           ->read({"SQ_WAVES.sum", "SQ_INSTS.sum", "GRBM_GUI_ACTIVE.max",
                                   "TCC_HIT.sum", "dispatch.ns"},
                                  work_of(stream, fake, 2))
                           .value();
  EXPECT_EQ(reading.passes, 2);
  EXPECT_EQ(fake.counted, (std::vector<std::vector<std::string>>{{"SQ_WAVES", "GRBM_GUI_ACTIVE"},
                                                                 {"SQ_WAVES", "GRBM_GUI_ACTIVE"},
                                                                 {"TCC_HIT"},
                                                                 {"TCC_HIT"}}));
  // A time is that of one pass.
  EXPECT_EQ(reading.values, (Values{{"SQ_WAVES.sum", 80},
                                    {"GRBM_GUI_ACTIVE.max", 2000},
                                    {"TCC_HIT.sum", 20},
                                    {"dispatch.ns", 5000}}));
  EXPECT_EQ(stream.waits, 4);
  EXPECT_EQ(fake.sets, 0);
}

TEST(Rocprofiler, FindsTheGpuByItsAddress) {
  FakeRocprofiler& fake = open_fake_rocprofiler();
  fake.agents = {{.handle = 5, .domain = 1}, {.handle = 6, .location = 0xc1 << 8 | 3 << 3 | 2}};
  auto& library = session();
  const auto reader = rocprofiler::open(library, {"0000:c1:03.2", "gfx1100"}).value();
  CountedStream stream;
  CountedWork work;
  work.stream = &stream;
  work.record = [&](Stream&) {
    fake.dispatch(5);
    fake.dispatch(6);
    return Result<void>();
  };
  const auto reading = reader->read({"SQ_WAVES.sum"}, work).value();
  EXPECT_EQ(reading.values, (Values{{"SQ_WAVES.sum", 40}}));
  const auto none = rocprofiler::open(library, {address, "gfx1100"});
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().message, "rocprofiler-sdk 1.0 lists no GPU at 0000:c1:00.0");
}

TEST(Rocprofiler, WhatIsNotCountedIsAReason) {
  FakeRocprofiler& fake = open_fake_rocprofiler();
  const auto reader = rocprofiler::open(session(), {address, "gfx90a"}).value();
  CountedStream stream;
  const auto none = reader->read({"SQ_NOTHING.sum"}, work_of(stream, fake, 1));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().message, "rocprofiler-sdk 1.0 knows none of the counters of gfx90a");
  const auto unseen = reader->read({"SQ_WAVES.sum"}, work_of(stream, fake, 0));
  ASSERT_FALSE(unseen);
  EXPECT_NE(unseen.failure().message.find("saw no dispatch"), std::string::npos);
  fake.drops_records = true;
  auto work = work_of(stream, fake, 2);
  work.deadline = std::chrono::milliseconds(20);
  const auto dropped = reader->read({"SQ_WAVES.sum"}, work);
  ASSERT_FALSE(dropped);
  EXPECT_EQ(dropped.failure().message, "rocprofiler-sdk 1.0 gave the counts of 0 of 2 dispatches");
  fake.drops_records = false;
  stream.waited = Failure{Status::timeout, "too slow", {}};
  const auto failed = reader->read({"SQ_WAVES.sum"}, work_of(stream, fake, 1));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.failure().status, Status::timeout);
  stream.waited = {};
  EXPECT_TRUE(reader->read({"SQ_WAVES.sum"}, work_of(stream, fake, 1)));
  EXPECT_EQ(fake.sets, 0);
}

std::string configuring_with(const std::string& function, int status) {
  open_fake_rocprofiler().results[function] = status;
  const auto configured = rocprofiler::configure({FAKE_ROCPROFILER});
  return configured ? "configured" : configured.failure().message;
}

TEST(Rocprofiler, ARefusalNamesTheFunctionAndTheResult) {
  EXPECT_EQ(configuring_with("force_configure", 16),
            "another profiler has configured rocprofiler-sdk in this process");
  for (const std::string function :
       {"create_context", "configure_callback_dispatch_counting_service", "start_context"}) {
    EXPECT_EQ(configuring_with(function, 12), "rocprofiler_" + function + ": Context conflict");
    EXPECT_EQ(configuring_with(function, 99), "rocprofiler_" + function + ": error 99");
  }
  FakeRocprofiler& fake = open_fake_rocprofiler();
  const auto reader = rocprofiler::open(session(), {address, "gfx90a"}).value();
  fake.results["create_counter_config"] = 40;
  CountedStream stream;
  const auto refused = reader->read({"SQ_WAVES.sum"}, work_of(stream, fake, 1));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("CAP_PERFMON"), std::string::npos);
  EXPECT_NE(refused.failure().message.find("Permission denied"), std::string::npos);
}

TEST(Rocprofiler, AMissingLibraryAndAnOldOneAreReasons) {
  const auto missing = rocprofiler::configure({"libgreta-no-rocprofiler.so"});
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.failure().message.find("there is no rocprofiler-sdk"), std::string::npos);
  FakeRocprofiler& fake = open_fake_rocprofiler();
  fake.major = 0;
  fake.minor = 5;
  const auto old = rocprofiler::configure({FAKE_ROCPROFILER});
  ASSERT_FALSE(old);
  EXPECT_EQ(old.failure().message,
            "rocprofiler-sdk 0.5 is too old to count with: 0.6 (ROCm 6.4) or later is needed");
}

}  // namespace
}  // namespace greta::test::rocprofiler_test
