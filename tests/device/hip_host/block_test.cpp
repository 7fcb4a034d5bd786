// Protects: blocks of every shape on hip-host: thread indices, barriers, shared memory, arguments,
// atomics.

#include <cmath>

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::block_test {
namespace {

class HipHostBlock : public ::testing::TestWithParam<Imitated> {
 protected:
  HostDevice host_{GetParam()};
};
// One device with waves of 32, one with waves of 64.
INSTANTIATE_TEST_SUITE_P(All, HipHostBlock, ::testing::Values(sm_80, gfx942), imitated_name);

TEST_P(HipHostBlock, ThreadsKnowWhereTheyAre) {
  const std::string text = R"(
extern "C" __global__ void test(unsigned* out) {
  const unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  const unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  unsigned* const mine = out + 8 * (block * blockDim.x * blockDim.y * blockDim.z + thread);
  mine[0] = threadIdx.x;
  mine[1] = threadIdx.y;
  mine[2] = threadIdx.z;
  mine[3] = blockIdx.x;
  mine[4] = blockIdx.y;
  mine[5] = blockIdx.z;
  mine[6] = __lane_id();
  mine[7] = 1;
})";
  const std::array<std::array<unsigned, 3>, 6> blocks{
      {{1, 1, 1}, {32, 1, 1}, {33, 2, 1}, {8, 8, 4}, {1024, 1, 1}, {3, 5, 7}}};
  for (const auto& [bx, by, bz] : blocks) {
    const Grid grid{3, 2, 2};
    const unsigned threads = bx * by * bz;
    const auto out = host_.upload(std::vector<unsigned>(8 * 12 * threads));
    host_.run(HostDevice::source(text, {bx, by, bz}), grid, out).value();
    const auto result = host_.download<unsigned>(out);
    for (unsigned i = 0; i < 12 * threads; ++i) {
      const unsigned block = i / threads, thread = i % threads;
      const std::vector<unsigned> expected{
          thread % bx,   thread / bx % by, thread / (bx * by),           block % grid[0],
          block / 3 % 2, block / 6,        thread % wave_of(GetParam()), 1};
      for (unsigned e = 0; e < 8; ++e) ASSERT_EQ(result[8 * i + e], expected[e]) << i << " " << e;
    }
  }
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool checked = true;
#else
constexpr bool checked = false;
#endif

// Blocks have no order. Several threads of the processor take them, so that neighbours may change
// places. Sanitizers' reports name the first block, so that launches begin with it.
TEST_P(HipHostBlock, AnEvenNumberOfThemBeginsWithTheLastOne) {
  const std::string text = R"(
extern "C" __global__ void test(unsigned* out) { out[1 + blockIdx.x] = atomicAdd(out, 1U); })";
  for (const unsigned blocks : {1000U, 1001U}) {
    const auto out = host_.upload(std::vector<unsigned>(1 + blocks));
    host_.run(HostDevice::source(text, {1, 1, 1}), {blocks, 1, 1}, out).value();
    const auto turn = host_.download<unsigned>(out);
    EXPECT_EQ(turn[0], blocks);
    EXPECT_EQ(turn[1] > turn[blocks], blocks % 2 == 0 && !checked);
  }
}

// Reverses shared memory repeatedly; each round needs both barriers.
TEST_P(HipHostBlock, BarriersHoldAllThreads) {
  const std::string text = R"(
extern "C" __global__ void test(int* out, int rounds) {
  __shared__ int values[1024];
  const int i = threadIdx.x, n = blockDim.x;
  values[i] = i;
  for (int round = 0; round < rounds; ++round) {
    __syncthreads();
    const int other = values[(i + 1) % n];
    __syncthreads();
    values[i] = other;
  }
  out[blockIdx.x * n + i] = values[i];
})";
  for (const unsigned threads : {1U, 7U, 64U, 65U, 256U, 1000U, 1024U}) {
    const auto out = host_.upload(std::vector<int>(5 * threads));
    host_.run(HostDevice::source(text, {threads, 1, 1}), {5, 1, 1}, out, 13).value();
    const auto result = host_.download<int>(out);
    for (unsigned i = 0; i < 5 * threads; ++i) {
      ASSERT_EQ(result[i], static_cast<int>((i % threads + 13) % threads)) << threads;
    }
  }
}

TEST_P(HipHostBlock, SharedMemoryStartsAsNaNInEveryBlock) {
  const auto out = host_.upload(std::vector<float>(64 * 100));
  host_
      .run(HostDevice::source(R"(
__device__ float* buffer() {
  __shared__ float inner[64];
  return inner;
}
extern __shared__ float rest[];
extern "C" __global__ void test(float* out) {
  __shared__ float tile[64];
  const int i = threadIdx.x;
  bool right = __builtin_isnan(tile[i]) && __builtin_isnan(rest[i]) && __builtin_isnan(buffer()[i]);
  __syncthreads();
  tile[i] = rest[i] = buffer()[i] = 1;
  out[blockIdx.x * 64 + i] = right;
})",
                              {64, 1, 1}, 64 * sizeof(float)),
           {100, 1, 1}, out)
      .value();
  EXPECT_EQ(host_.download<float>(out), std::vector<float>(6400, 1));
}

TEST_P(HipHostBlock, DynamicSharedMemoryIsTheLaunchs) {
  const std::string text = R"(
template <typename T> __device__ T* rest() { return greta_host::dynamic_shared<T>(); }
extern "C" __global__ void test(int* out) {
  extern __shared__ __attribute__((aligned(16))) int values[];
  __shared__ int fixed;
  const int i = threadIdx.x, n = blockDim.x;
  if (i == 0) fixed = 5;
  values[i] = i;
  __syncthreads();
  out[blockIdx.x * n + i] = rest<int>()[n - 1 - i] + fixed;
})";
  const unsigned limit = host_.device().info().shared_memory_bytes;
  for (const unsigned bytes : {1024U * 4, limit - 4}) {
    const auto out = host_.upload(std::vector<int>(1024 * 3));
    host_.run(HostDevice::source(text, {1024, 1, 1}, bytes), {3, 1, 1}, out).value();
    const auto result = host_.download<int>(out);
    for (int i = 0; i < 1024 * 3; ++i) {
      ASSERT_EQ(result[static_cast<std::size_t>(i)], 1023 - i % 1024 + 5);
    }
  }
  const auto out = host_.upload(std::vector<int>(1024));
  const auto ran = host_.run(HostDevice::source(text, {1024, 1, 1}, limit), {1, 1, 1}, out);
  ASSERT_FALSE(ran) << "4 bytes more than the device has";
  EXPECT_NE(ran.failure().message.find(std::to_string(limit + 4)), std::string::npos)
      << ran.failure().message;
}

TEST_P(HipHostBlock, TooMuchStaticSharedMemoryIsRefused) {
  const auto out = host_.upload(std::vector<int>(1));
  const auto ran = host_.run(HostDevice::source(R"(
extern "C" __global__ void test(int* out) {
  __shared__ int many[100000];
  many[out[0]] = 1;
  *out = many[1];
})",
                                                {1, 1, 1}),
                             {1, 1, 1}, out);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.failure().status, Status::compile);
  EXPECT_NE(ran.failure().message.find("400000 bytes of shared memory"), std::string::npos)
      << ran.failure().message;
}

TEST_P(HipHostBlock, ArgumentsLieAtTheirNaturalAlignment) {
  const auto out = host_.upload(std::vector<double>(7));
  const char a = 1;
  const double b = 2.5;
  const short c = -3;
  const float d = 4.25F;
  const std::uint64_t e = 5;
  const char f = 6;
  host_
      .run(HostDevice::source(R"(
struct Pair { short first, second; };
extern "C" __global__ void test(char a, double b, short c, double* out, float d,
                                unsigned long long e, char f, Pair pair) {
  out[0] = a, out[1] = b, out[2] = c, out[3] = d, out[4] = e, out[5] = f;
  out[6] = pair.first * 100 + pair.second;
})",
                              {1, 1, 1}),
           {1, 1, 1}, a, b, c, out, d, e, f, std::array<short, 2>{7, 8})
      .value();
  EXPECT_EQ(host_.download<double>(out), (std::vector<double>{1, 2.5, -3, 4.25, 5, 6, 708}));
}

TEST_P(HipHostBlock, BlocksRunInParallelAndAtomicsAreAtomic) {
  const auto out = host_.upload(std::vector<unsigned>(12));
  const auto sums = host_.upload(std::vector<float>(2));
  const unsigned blocks = 400, threads = 128;
  host_
      .run(HostDevice::source(R"(
extern "C" __global__ void test(unsigned* out, float* sums) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  __shared__ unsigned in_block;
  if (threadIdx.x == 0) in_block = 0;
  __syncthreads();
  atomicAdd(&in_block, 1u);
  atomicAdd(out, 1u);
  atomicSub(out + 1, 2u);
  atomicMax(out + 2, i);
  atomicMin(reinterpret_cast<int*>(out + 3), -int(i));
  atomicOr(out + 4, 1u << i % 32);
  atomicAnd(out + 5, i);
  atomicXor(out + 6, i);
  atomicInc(out + 7, 9u);
  atomicDec(out + 8, 9u);
  unsigned old = out[9];
  for (unsigned seen = old + 1; seen != old;) {
    seen = old;
    old = atomicCAS(out + 9, seen, seen + 3);
  }
  atomicAdd(sums, 0.5f);
  __syncthreads();
  if (threadIdx.x == 0) {
    // The last block to come finds what all have counted.
    atomicAdd(out + 10, in_block);
    __threadfence();
    if (atomicAdd(out + 11, 1u) == gridDim.x - 1) sums[1] = atomicExch(out + 10, 7u);
  }
})",
                              {threads, 1, 1}),
           {blocks, 1, 1}, out, sums)
      .value();
  const auto result = host_.download<unsigned>(out);
  const unsigned all = blocks * threads;
  unsigned parity = 0;
  for (unsigned i = 0; i < all; ++i) parity ^= i;
  EXPECT_EQ(result[0], all);
  EXPECT_EQ(result[1], 0U - 2 * all);
  EXPECT_EQ(result[2], all - 1);
  EXPECT_EQ(static_cast<int>(result[3]), 1 - static_cast<int>(all));
  EXPECT_EQ(result[4], ~0U);
  EXPECT_EQ(result[5], 0U);
  EXPECT_EQ(result[6], parity);
  EXPECT_EQ(result[7], all % 10);
  EXPECT_EQ(result[8], (10 - all % 10) % 10);
  EXPECT_EQ(result[9], 3 * all);
  EXPECT_EQ(result[10], 7U);
  EXPECT_EQ(host_.download<float>(sums), (std::vector<float>{0.5F * all, static_cast<float>(all)}));
}

// The blocks of a launch run concurrently: two that wait for each other both finish.
TEST_P(HipHostBlock, TwoBlocksCanWaitForEachOther) {
  const auto out = host_.upload(std::vector<unsigned>(1));
  host_
      .run(HostDevice::source(R"(
extern "C" __global__ void test(volatile unsigned* out) {
  atomicAdd(const_cast<unsigned*>(out), 1u);
  while (*out != 2) {}
})",
                              {1, 1, 1}),
           {2, 1, 1}, out)
      .value();
  EXPECT_EQ(host_.download<unsigned>(out)[0], 2U);
}

TEST_P(HipHostBlock, HasHipsFunctions) {
  const auto out = host_.upload(std::vector<double>(24));
  host_
      .run(HostDevice::source(R"(
extern "C" __global__ void test(double* out) {
  const float4 v = make_float4(1, 2, 3, 4);
  const uint2 w = make_uint2(5, 6);
  int i = 0;
  out[i++] = v.x + v.y * v.z - v.w + w.x + w.y;
  out[i++] = sqrtf(2.0f), out[i++] = rsqrtf(4.0f), out[i++] = expf(1.0f), out[i++] = __expf(0.0f);
  out[i++] = tanhf(0.5f), out[i++] = erff(0.25f), out[i++] = fmaf(2, 3, 4), out[i++] = powf(2, 10);
  out[i++] = min(3, -2), out[i++] = max(3u, 7u), out[i++] = fmaxf(1, 2), out[i++] = abs(-4);
  out[i++] = __popc(0xF0F0), out[i++] = __clz(1), out[i++] = __ffs(8), out[i++] = __brev(1) >> 31;
  out[i++] = __umulhi(1u << 31, 6), out[i++] = __uint_as_float(0x40000000u);
  out[i++] = __float_as_uint(1.0f) >> 23, out[i++] = __fdividef(1, 8), out[i++] = __saturatef(3);
  const _Float16 h = _Float16(1.5f);
  out[i++] = float(h * h + _Float16(0.25f));
  out[i++] = i;
})",
                              {1, 1, 1}),
           {1, 1, 1}, out)
      .value();
  const auto result = host_.download<double>(out);
  const std::vector<double> expected{14,
                                     std::sqrt(2.0),
                                     0.5,
                                     std::exp(1.0),
                                     1,
                                     std::tanh(0.5),
                                     std::erf(0.25),
                                     10,
                                     1024,
                                     -2,
                                     7,
                                     2,
                                     4,
                                     8,
                                     31,
                                     4,
                                     1,
                                     3,
                                     2,
                                     127,
                                     0.125,
                                     1,
                                     2.5,
                                     23};
  for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(result[i], expected[i], 1e-6) << i;
}

}  // namespace
}  // namespace greta::test::block_test
