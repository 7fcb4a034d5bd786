// Protects: counting through CUPTI: the order and the structures of its calls, several passes with
// what is to run before each, counters that the GPU lacks, and refusals, which name the function.

#include "runtime/device/counters/cupti.hpp"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "runtime/device/hip/hip_backend.hpp"
#include "tests/counted_stream.hpp"
#include "tests/device/counters/fake/fake_cupti.hpp"
#include "tests/layers.hpp"

namespace greta::test::cupti_test {
namespace {

/// Opens the fake library in its initial state, with two metrics.
FakeCupti& open_fake() {
  void* const library = dlopen(FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
  auto* const find = reinterpret_cast<FakeCupti* (*)()>(dlsym(library, "fake_cupti"));
  FakeCupti& fake = *find();
  fake = FakeCupti();
  fake.metrics = {{"dram__bytes_read.sum", 4096}, {"sm__warps_active.avg", 12.5}};
  return fake;
}

CuptiTarget target(const std::string& library = FAKE_CUPTI) {
  CuptiTarget target;
  target.libraries = {library};
  return target;
}

std::string refusal_of(const std::string& function, int result) {
  FakeCupti& fake = open_fake();
  fake.results[function] = result;
  auto reader = open_cupti(target());
  CountedStream stream;
  CountedWork work{
      .stream = &stream, .prepare = {}, .record = [](Stream&) { return Result<void>(); }};
  const auto reading = reader ? (*reader)->read({"dram__bytes_read.sum"}, work)
                              : Result<CounterReading>(reader.failure());
  if (reading) return "no refusal";
  EXPECT_EQ(reading.failure().status, Status::unavailable);
  EXPECT_EQ(fake.hosts, 0) << function;  // nothing of a failed reading is left
  EXPECT_EQ(fake.ranges, 0) << function;
  EXPECT_FALSE(fake.enabled) << function;
  return reading.failure().message;
}

TEST(Cupti, CountsInAsManyPassesAsItNeeds) {
  FakeCupti& fake = open_fake();
  fake.passes = 3;
  const auto reader = open_cupti(target()).value();
  EXPECT_EQ(reader->source(), (CounterSource{"CUPTI 13.0", "FAKE100"}));
  CountedStream stream;
  std::string order;
  CountedWork work;
  work.stream = &stream;
  work.prepare = [&](Stream&) {
    EXPECT_TRUE(fake.started && !fake.pushed);  // outside of the range nothing is counted
    order += 'p';
    return Result<void>();
  };
  work.record = [&](Stream&) {
    EXPECT_TRUE(fake.pushed);
    order += 'r';
    return Result<void>();
  };
  const auto reading = reader->read({"dram__bytes_read.sum", "sm__warps_active.avg"}, work).value();
  EXPECT_EQ(order, "prprpr");
  EXPECT_EQ(stream.waits, 6);  // the work is done when its range ends
  EXPECT_EQ(reading.passes, 3);
  EXPECT_EQ(reading.values, (std::map<std::string, double>{{"dram__bytes_read.sum", 4096},
                                                           {"sm__warps_active.avg", 12.5}}));
  EXPECT_TRUE(fake.misuse.empty()) << fake.misuse.front();
  EXPECT_FALSE(fake.enabled);
  EXPECT_EQ(fake.hosts, 0);
}

TEST(Cupti, ACounterThatTheGpuLacksIsAbsent) {
  open_fake();
  const auto reader = open_cupti(target()).value();
  CountedStream stream;
  const CountedWork work{
      .stream = &stream, .prepare = {}, .record = [](Stream&) { return Result<void>(); }};
  const auto reading =
      reader->read({"smsp__nothing.sum", "dram__bytes_read.sum", "dram__bytes_read.odd"}, work)
          .value();
  EXPECT_EQ(reading.values, (std::map<std::string, double>{{"dram__bytes_read.sum", 4096}}));
  const auto none = reader->read({"smsp__nothing.sum"}, work);
  ASSERT_FALSE(none);
  EXPECT_EQ(none.failure().message, "CUPTI 13.0 knows none of the counters of FAKE100");
}

TEST(Cupti, ReadsAgainAfterAReading) {
  FakeCupti& fake = open_fake();
  const auto reader = open_cupti(target()).value();
  CountedStream stream;
  const CountedWork work{
      .stream = &stream, .prepare = {}, .record = [](Stream&) { return Result<void>(); }};
  EXPECT_TRUE(reader->read({"dram__bytes_read.sum"}, work));
  EXPECT_TRUE(reader->read({"sm__warps_active.avg"}, work));
  EXPECT_TRUE(fake.misuse.empty());
}

TEST(Cupti, ARefusalNamesTheFunctionAndTheResult) {
  for (const std::string function :
       {"DeviceGetChipName", "ProfilerHostInitialize", "ProfilerHostGetConfigImageSize",
        "ProfilerHostGetConfigImage", "ProfilerHostEvaluateToGpuValues", "RangeProfilerEnable",
        "RangeProfilerGetCounterDataSize", "RangeProfilerCounterDataImageInitialize",
        "RangeProfilerSetConfig", "RangeProfilerStart", "RangeProfilerPushRange",
        "RangeProfilerPopRange", "RangeProfilerStop", "RangeProfilerDecodeData",
        "RangeProfilerGetCounterDataInfo"}) {
    EXPECT_EQ(refusal_of(function, 26), "cupti" + function + ": CUPTI_ERROR_HARDWARE_BUSY");
  }
  EXPECT_EQ(refusal_of("ProfilerInitialize", 12345), "cuptiProfilerInitialize: CUPTI error 12345");
}

TEST(Cupti, AMissingPermissionSaysWhatGivesIt) {
  for (const std::string function : {"ProfilerGetCounterAvailability", "RangeProfilerEnable"}) {
    const std::string message = refusal_of(function, 35);
    EXPECT_NE(message.find("ERR_NVGPUCTRPERM"), std::string::npos) << message;
    EXPECT_NE(message.find("NVreg_RestrictProfilingToAdminUsers=0"), std::string::npos);
    EXPECT_NE(message.find("cupti" + function + ": CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"),
              std::string::npos);
    EXPECT_EQ(message.find('\n'), std::string::npos);
  }
}

TEST(Cupti, WorkThatFailsEndsTheReading) {
  FakeCupti& fake = open_fake();
  const auto reader = open_cupti(target()).value();
  CountedStream stream;
  stream.waited = Failure{Status::timeout, "too slow", {}};
  const CountedWork work{
      .stream = &stream, .prepare = {}, .record = [](Stream&) { return Result<void>(); }};
  const auto reading = reader->read({"dram__bytes_read.sum"}, work);
  ASSERT_FALSE(reading);
  EXPECT_EQ(reading.failure().status, Status::timeout);
  EXPECT_FALSE(fake.enabled);
}

TEST(Cupti, AMissingLibraryAndAnOldOneAreReasons) {
  const auto missing = open_cupti(target("libgreta-no-cupti.so"));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.failure().status, Status::unavailable);
  EXPECT_NE(missing.failure().message.find("there is no CUPTI"), std::string::npos);
  const auto old = open_cupti(target(FAKE_OLD_CUPTI));
  ASSERT_FALSE(old);
  EXPECT_NE(old.failure().message.find("has no function cuptiRangeProfilerEnable"),
            std::string::npos);
}

TEST(Counters, OfHipHostThereAreNone) {
  const auto backend = hip::create_host_backend();
  const auto device = backend->open(0, {}).value();
  const auto reader = open_counters(*device);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.failure().status, Status::unavailable);
  EXPECT_EQ(reader.failure().message,
            "hip-host:0 runs kernels on the CPU, and has no hardware counters");
}

}  // namespace
}  // namespace greta::test::cupti_test
