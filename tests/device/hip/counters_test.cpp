// Protects: the counters of a device of the CUDA driver are CUPTI's, counted on its own stream;
// those of a device of HIP are rocprofiler-sdk's, which is configured before HIP starts.

#include <dlfcn.h>

#include "runtime/device/counter_reader.hpp"
#include "tests/device/counters/fake/fake_cupti.hpp"
#include "tests/device/counters/fake/fake_rocprofiler.hpp"
#include "tests/device/hip/fake_library.hpp"
#include "tests/layers.hpp"

namespace greta::test::hip_counters_test {
namespace {

TEST(HipCounters, OfTheCudaDriverAreCuptis) {
  open_fake(Fake::cuda);
  void* const library = dlopen(FAKE_CUPTI, RTLD_NOW | RTLD_LOCAL);
  FakeCupti& fake = *reinterpret_cast<FakeCupti* (*)()>(dlsym(library, "fake_cupti"))();
  fake = FakeCupti();
  fake.metrics = {{"dram__bytes_read.sum", 4096}};
  hip::Libraries libraries{{"libgreta-none.so"}, {path_of(Fake::cuda)}, {FAKE_CUPTI}, {}};
  const auto backend = hip::create_backend(libraries);
  const auto device = backend->open(0, {}).value();
  const auto reader = open_counters(*device).value();
  EXPECT_EQ(reader->source().chip, "FAKE100");
  const auto stream = device->create_stream().value();
  const auto buffer = device->allocate(4096).value();
  CountedWork work;
  work.stream = stream.get();
  work.record = [&](Stream& to) { return to.fill(*buffer, 0, 4096, 7); };
  const auto reading = reader->read({"dram__bytes_read.sum", "of.another"}, work).value();
  EXPECT_EQ(reading.values, (std::map<std::string, double>{{"dram__bytes_read.sum", 4096}}));
  EXPECT_TRUE(fake.misuse.empty());
}

TEST(HipCounters, OfAmdGpusAreRocprofilersWhichComesBeforeHip) {
  FakeHip& hip = open_fake(Fake::hip6);
  void* const library = dlopen(FAKE_ROCPROFILER, RTLD_NOW | RTLD_LOCAL);
  const auto find = reinterpret_cast<FakeRocprofiler* (*)()>(dlsym(library, "fake_rocprofiler"));
  FakeRocprofiler& fake = *find();
  fake = FakeRocprofiler();
  fake.counters = {{"SQ_WAVES", {3, 4}}};
  int initialized = -1;
  fake.on_configure = [&] { initialized = hip.calls["hipInit"]; };
  find();
  hip.on_launch = [&](const FakeLaunch&) { fake.dispatch(1); };
  hip::Libraries libraries{{path_of(Fake::hip6)}, {"libgreta-none.so"}, {}, {FAKE_ROCPROFILER}};
  const auto backend = hip::create_backend(libraries);
  backend->prepare_counters();
  const auto device = backend->open(0, {}).value();
  EXPECT_EQ(initialized, 0);
  const auto reader = open_counters(*device).value();
  EXPECT_EQ(reader->source(), (CounterSource{"rocprofiler-sdk 1.0", "gfx90a"}));
  const auto stream = device->create_stream().value();
  const auto kernel = device->load(work_source(), code_object_of(Fake::hip6)).value();
  CountedWork work;
  work.stream = stream.get();
  const std::vector<std::byte> arguments(16);
  work.record = [&](Stream& to) { return to.launch(*kernel, {1, 1, 1}, arguments); };
  const auto reading = reader->read({"SQ_WAVES.sum"}, work).value();
  EXPECT_EQ(reading.values, (std::map<std::string, double>{{"SQ_WAVES.sum", 7}}));
  hip.on_launch = {};
  EXPECT_TRUE(fake.misuse.empty()) << fake.misuse.front();
}

TEST(HipCounters, OfAmdGpusSayWhyThereAreNone) {
  open_fake(Fake::hip6);
  const auto unprepared = backend_of(Fake::hip6)->open(0, {}).value();
  const auto late = open_counters(*unprepared);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.failure().status, Status::unavailable);
  EXPECT_NE(late.failure().message.find("opened without counters"), std::string::npos);
  hip::Libraries libraries{{path_of(Fake::hip6)}, {"libgreta-none.so"}, {}, {"libgreta-none.so"}};
  const auto backend = hip::create_backend(libraries);
  backend->prepare_counters();
  const auto missing = open_counters(*backend->open(0, {}).value());
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.failure().message.find("there is no rocprofiler-sdk"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::hip_counters_test
