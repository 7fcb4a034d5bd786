// Protects: the counters of a device of the CUDA driver are CUPTI's, counted on its own stream.

#include <dlfcn.h>

#include "runtime/device/counter_reader.hpp"
#include "tests/device/counters/fake_cupti.hpp"
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

TEST(HipCounters, OfAmdGpusSayWhyThereAreNone) {
  open_fake(Fake::hip6);
  const auto device = backend_of(Fake::hip6)->open(0, {}).value();
  const auto reader = open_counters(*device);
  ASSERT_FALSE(reader);
  EXPECT_EQ(reader.failure().status, Status::unavailable);
  EXPECT_NE(reader.failure().message.find("rocprofiler-sdk"), std::string::npos);
}

}  // namespace
}  // namespace greta::test::hip_counters_test
