// Protects: errors on which a GPU would hang or silently give wrong results are reported with
// thread, block and line, and the device is usable after it is reopened.

#include <chrono>

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::misuse_test {
namespace {

using Clock = std::chrono::steady_clock;

/// Returns a kernel of 64 threads whose body starts at line 2. It has a buffer `out` of 64 ints.
KernelSource kernel_of(const std::string& body) {
  return HostDevice::source("extern \"C\" __global__ void test(int* out) {\n" + body + "\n}",
                            {64, 1, 1});
}

/// Runs the body in two blocks. It must fail with a message that contains all these parts.
void expect_failure(Imitated device, const std::string& body, Status status,
                    const std::vector<std::string>& parts) {
  HostDevice host(device);
  const auto out = host.upload(std::vector<int>(64));
  const auto ran = host.run(kernel_of(body), {1, 1, 1}, out);
  ASSERT_FALSE(ran) << body;
  EXPECT_EQ(ran.failure().status, status) << ran.failure().message;
  for (const auto& part : parts) {
    EXPECT_NE(ran.failure().message.find(part), std::string::npos)
        << "\"" << part << "\" is not in: " << ran.failure().message;
  }
}

TEST(HipHostMisuse, SomeThreadsEndBeforeABarrier) {
  expect_failure(sm_80, "if (threadIdx.x % 2 == 1) return;\n__syncthreads();", Status::device_lost,
                 {"no thread of block (",
                  "32 threads, the first of them (0,0,0), wait in "
                  "__syncthreads at test.hip:3",
                  "32 threads, the first of them (1,0,0), have ended"});
}

TEST(HipHostMisuse, ThreadsWaitAtDifferentBarriers) {
  expect_failure(gfx942, "if (threadIdx.x < 63)\n__syncthreads();\nelse\n__syncthreads();",
                 Status::device_lost,
                 {"thread (63,0,0) of block (",
                  "comes to __syncthreads at test.hip:5 while others "
                  "of its block wait in __syncthreads at test.hip:3"});
}

TEST(HipHostMisuse, OneThreadSkipsABarrierOfALoop) {
  expect_failure(
      sm_80, "for (int i = 0; i < (threadIdx.x == 40 ? 2 : 3); ++i)\n__syncthreads();",
      Status::device_lost,
      {"63 threads", "wait in __syncthreads at test.hip:3", "; thread (40,0,0) has ended"});
}

TEST(HipHostMisuse, ALaneMissesAShuffle) {
  expect_failure(gfx942,
                 "int v = threadIdx.x;\nif (threadIdx.x != 7)\nv = __shfl_xor(v, 1);\n"
                 "__syncthreads();\nout[threadIdx.x] = v;",
                 Status::device_lost,
                 {"63 threads", "wait in __shfl_xor at test.hip:4",
                  "thread (7,0,0) waits in __syncthreads at test.hip:5"});
}

TEST(HipHostMisuse, LanesShuffleAtDifferentPlaces) {
  expect_failure(sm_80,
                 "int v = 1;\nif (threadIdx.x % 32 < 16)\nv = __shfl(v, 0);\nelse\n"
                 "v = __shfl(v, 0);\nout[threadIdx.x] = v;",
                 Status::device_lost,
                 {"comes to __shfl at test.hip:6 while others of its wave wait in __shfl at "
                  "test.hip:4"});
}

TEST(HipHostMisuse, AWaveOperationOfAnotherKind) {
  expect_failure(sm_80, "out[0] = threadIdx.x == 0 ? __any(1) : __all(1);", Status::device_lost,
                 {"comes to __all", "wait in __any"});
}

#if !defined(__SANITIZE_ADDRESS__)  // otherwise the sanitizer ends the process

TEST(HipHostMisuse, AVectorThatIsNotAligned) {
  expect_failure(sm_80,
                 "const int4 v = *reinterpret_cast<const int4*>(out + threadIdx.x);\n"
                 "out[0] = v.x;",
                 Status::device_lost,
                 {"an access at test.hip:2: the address is not aligned for 'const struct int4'",
                  "by thread (1,0,0) of block ("});
}

TEST(HipHostMisuse, AnIllegalAddress) {
  expect_failure(sm_80, "if (threadIdx.x == 9) *reinterpret_cast<volatile int*>(64) = 1;",
                 Status::device_lost,
                 {"hipErrorIllegalAddress", "address 0x40 by thread (9,0,0) of block ("});
}

TEST(HipHostMisuse, ADivisionByZero) {
  expect_failure(gfx1100, "out[0] = 7 / out[threadIdx.x];", Status::device_lost,
                 {"an integer division by zero by thread (0,0,0)"});
}

TEST(HipHostMisuse, TooMuchPrivateMemory) {
  expect_failure(sm_80, "volatile int large[50000]; large[threadIdx.x] = 1; out[0] = large[1];",
                 Status::device_lost,
                 {"thread (0,0,0) of block (",
                  "needs more than 128 KiB of "
                  "private memory"});
}

#endif

TEST(HipHostMisuse, TheDeviceIsUsableWhenOpenedAgain) {
  HostDevice other(gfx942);
  for (int round = 0; round < 3; ++round) {
    HostDevice host(sm_80);
    const auto out = host.upload(std::vector<int>(64, 3));
    EXPECT_TRUE(host.run(kernel_of("out[threadIdx.x] += threadIdx.x;"), {1, 1, 1}, out));
    EXPECT_EQ(host.download<int>(out)[63], 66);
    EXPECT_FALSE(host.run(kernel_of("if (threadIdx.x == 0) __syncthreads();"), {1, 1, 1}, out));
    const auto again = host.run(kernel_of("out[0] = 1;"), {1, 1, 1}, out);
    ASSERT_FALSE(again) << "the failure sticks";
    EXPECT_EQ(again.failure().status, Status::device_lost);
  }
  const auto out = other.upload(std::vector<int>(64));
  EXPECT_TRUE(other.run(kernel_of("out[threadIdx.x] = 1;"), {1, 1, 1}, out))
      << "another device has nothing to do with it";
}

TEST(HipHostMisuse, AnEndlessKernelIsStopped) {
  const std::string endless[] = {
      "for (volatile int i = 0;; ++i) {}", "for (;;) __syncthreads();",
      "for (int v = 0;; ++v) out[threadIdx.x] = __shfl(v, 0);",
      // One lane never arrives, because it waits for a value that is never written.
      "if (threadIdx.x == 5) while (*static_cast<volatile int*>(out) != 1) {}\n__syncthreads();"};
  for (const auto& body : endless) {
    KernelSource source = kernel_of(body);
    source.argument_bytes = 8;
    HostDevice host(sm_80);
    const auto out = host.upload(std::vector<int>(64));
    const auto kernel = host.device().compile(source).value();
    const auto stream = host.device().create_stream().value();
    // More blocks than the machine has cores.
    stream->launch(*kernel, {1000, 1, 1}, ArgumentBlock(out).bytes()).value();
    const auto late = stream->synchronize(std::chrono::milliseconds(100));
    ASSERT_FALSE(late);
    EXPECT_EQ(late.failure().status, Status::timeout);
    // The cores are immediately available for the next device.
    HostDevice next(sm_80);
    const auto result = next.upload(std::vector<int>(64));
    EXPECT_TRUE(next.run(kernel_of("out[threadIdx.x] = 5;"), {1, 1, 1}, result)) << body;
    EXPECT_EQ(next.download<int>(result), std::vector<int>(64, 5));
  }
}

TEST(HipHostMisuse, BlocksThatAreTooLargeAreRefused) {
  HostDevice host(sm_80);
  const auto out = host.upload(std::vector<int>(64));
  const auto ran =
      host.run(HostDevice::source("extern \"C\" __global__ void test(int*) {}", {1025, 1, 1}),
               {1, 1, 1}, out);
  ASSERT_FALSE(ran);
  EXPECT_NE(ran.failure().message.find("1025"), std::string::npos) << ran.failure().message;
}

}  // namespace
}  // namespace greta::test::misuse_test
