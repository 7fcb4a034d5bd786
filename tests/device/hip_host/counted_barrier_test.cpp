// Protects: hip-host finds waits at an mbarrier that may miss the end of a phase. On a device, a
// thread that waits reads the phase's parity again and again: where two phases end in between, it
// sees the parity with which it began, and may wait for ever.

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::counted_barrier_test {
namespace {

/// Wave 0 ends two phases of `go`, of which waves 1 and 2 wait for the first. Returns the failure's
/// message. `between` is what wave 0 does between the phases, and `after` what the others do after
/// their wait; of `seen`, a phase has so many arrivals.
std::string run(const std::string& between, const std::string& after, unsigned seen,
                unsigned blocks) {
  HostDevice host(sm_80);
  const auto out = host.upload(std::vector<int>(1));
  const auto ran = host.run(HostDevice::source(R"(
extern "C" __global__ void test(unsigned count, int* out) {
  __shared__ uint64_t ready, go, seen;
  const unsigned wave = threadIdx.x / 32;
  if (threadIdx.x == 0) {
    greta_host::counted_open(&ready, 64);
    greta_host::counted_open(&go, 32);
    greta_host::counted_open(&seen, count);
  }
  __syncthreads();
  if (wave == 0) {
    greta_host::counted_wait(&ready, 0);
    greta_host::counted_arrive(&go);
)" + between + R"(
    greta_host::counted_arrive(&go);
  } else {
    greta_host::counted_arrive(&ready);
    greta_host::counted_wait(&go, 0);
)" + after + R"(
  }
})",
                                               {96, 1, 1}),
                            {blocks, 1, 1}, seen, out);
  return ran ? "" : ran.failure().message;
}

constexpr const char* await_seen = "greta_host::counted_wait(&seen, 0);";
constexpr const char* tell_seen = "greta_host::counted_arrive(&seen);";
constexpr const char* missed = "a thread may not have seen the end of the one before";

TEST(HipHostCountedBarriers, AllHaveSeenAPhaseBeforeTheNextEnds) {
  EXPECT_EQ(run(await_seen, tell_seen, 64, 16), "");
}

TEST(HipHostCountedBarriers, APhaseThatNobodyWaitedForToBeSeenIsTold) {
  const std::string message = run("", "", 64, 1);
  EXPECT_NE(message.find(missed), std::string::npos) << message;
}

// Waves that are late show that one wave's arrival says nothing about the other.
TEST(HipHostCountedBarriers, ALateWaveThatNobodyAwaitsIsTold) {
  const std::string message = run(await_seen, std::string("if (wave == 1) ") + tell_seen, 32, 16);
  EXPECT_NE(message.find(missed), std::string::npos) << message;
}

// On a device, that is undefined: threads that wait may miss a phase, or arrivals be lost.
TEST(HipHostCountedBarriers, OneThatIsOpenedAgainIsTold) {
  const std::string message =
      run(await_seen, std::string(tell_seen) + "greta_host::counted_open(&seen, count);", 64, 1);
  EXPECT_NE(message.find("the barrier is open already"), std::string::npos) << message;
}

}  // namespace
}  // namespace greta::test::counted_barrier_test
