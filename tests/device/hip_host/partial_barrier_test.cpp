// Protects: barriers for some waves of a block on hip-host: those that wait see what was written by
// those that arrived, and misuse ends the launch with its reason.

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::partial_barrier_test {
namespace {

// Wave 0 fills two stages in turn; waves 1 and 2 add them up. `empty` is what the first waits for
// before it fills a stage again, or nothing.
std::string producer_and_consumers(const std::string& empty) {
  return R"(
extern "C" __global__ void test(uint32_t* out) {
  __shared__ uint32_t tile[2][32];
  const uint32_t lane = threadIdx.x % 32, wave = threadIdx.x / 32;
  uint32_t sum = 0;
  for (uint32_t step = 0; step < 9; ++step) {
    const uint32_t full = 1 + step % 2, empty = 3 + step % 2;
    if (wave == 0) {
      if (step >= 2) {)" +
         empty + R"(}
      tile[step % 2][lane] = 100 * step + lane;
      greta_host::barrier_arrive(full, 96);
    } else {
      greta_host::barrier_sync(full, 96);
      sum += tile[step % 2][31 - lane];
      if (step + 2 < 9) greta_host::barrier_arrive(empty, 96);
    }
  }
  out[threadIdx.x] = sum;
})";
}

TEST(HipHostPartialBarrier, ProducerAndConsumersTakeTurns) {
  HostDevice host(sm_80);
  const auto out = host.upload(std::vector<std::uint32_t>(96));
  const auto run = [&](const std::string& empty) {
    return host.run(HostDevice::source(producer_and_consumers(empty), {96, 1, 1}), {1, 1, 1}, out);
  };
  run("greta_host::barrier_sync(empty, 96);").value();
  const auto sums = host.download<std::uint32_t>(out);
  for (std::uint32_t i = 32; i < 96; ++i) EXPECT_EQ(sums[i], 3600 + 9 * (31 - i % 32)) << i;
  // A producer that waits for nothing arrives several times, and leaves the others without a turn.
  EXPECT_FALSE(run(""));
}

TEST(HipHostPartialBarrier, MisuseIsTold) {
  const std::pair<std::string, std::string> cases[] = {
      {"greta_host::barrier_sync(16, 64);", "there is no such barrier"},
      {"greta_host::barrier_sync(1, 48);", "a barrier is for whole waves"},
      {"greta_host::barrier_sync(1, threadIdx.x < 32 ? 64 : 96);",
       "threads name different numbers of threads"},
      {"if (threadIdx.x < 32) greta_host::barrier_sync(1, 64);",
       "no thread of block (0,0,0) can go on; 32 threads, the first of them (0,0,0), wait in "
       "barrier_sync"},
  };
  for (const auto& [body, message] : cases) {
    HostDevice host(sm_80);
    const auto ran = host.run(
        HostDevice::source("extern \"C\" __global__ void test() {\n" + body + "\n}", {64, 1, 1}),
        {1, 1, 1});
    ASSERT_FALSE(ran) << body;
    EXPECT_NE(ran.failure().message.find(message), std::string::npos) << ran.failure().message;
  }
}

}  // namespace
}  // namespace greta::test::partial_barrier_test
