// Protects: two accesses to shared memory that nothing orders are reported with both stacks, both
// threads and the array, and kernels whose accesses are ordered pass.

#include <csignal>

#include "tests/device/hip_host/sanitized_run.hpp"

namespace greta::test::races_test {
namespace {

ProcessOutcome run_races(const std::string& text, Imitated device = sm_80, unsigned threads = 64,
                         unsigned dynamic_bytes = 0) {
  return run_sanitized(text, device, threads, dynamic_bytes, Sanitize::races);
}

struct RaceCase {
  std::string name, body;
  std::string later, earlier;  ///< what the report says of them, without "by"
  int line, earlier_line;
  std::string array;  ///< what it names
  std::string order = "lies between them";
  std::vector<Imitated> devices{sm_80, gfx942};
};

void PrintTo(const RaceCase& race, std::ostream* to) {
  *to << race.name;
}

class HipHostRace : public ::testing::TestWithParam<RaceCase> {};

const RaceCase races[] = {
    {"TileWithoutBarrier",
     "__shared__ int tile[64];\ntile[threadIdx.x] = 1;\nif (edge == 0) __syncthreads();\n"
     "out[threadIdx.x] = tile[63 - threadIdx.x];",
     "WRITE", "READ", 3, 5, "'tile' (256 bytes)"},
    {"DoubleBufferWithOneBarrierTooFew",
     "__shared__ int buffers[2][64];\nconst int i = threadIdx.x;\nint sum = 0;\n"
     "for (int step = 0; step < 4; ++step) {\n"
     "  buffers[edge == 0 ? step % 2 : 0][i] = step;\n  __syncthreads();\n"
     "  sum += buffers[edge == 0 ? step % 2 : 0][63 - i];\n}\nout[i] = sum;",
     "READ", "WRITE", 8, 6, "'buffers' (512 bytes)"},
    {"ReductionInAWaveWithoutSyncwarp",
     "__shared__ int sums[64];\nconst int i = threadIdx.x;\nsums[i] = i;\n__syncthreads();\n"
     "for (int half = 16; half > 0; half /= 2) {\n  const bool adds = i % 32 < half;\n"
     "  const int other = adds ? sums[i + half] : 0;\n  if (edge == 0) __syncwarp();\n"
     "  if (adds) sums[i] += other;\n  if (edge == 0) __syncwarp();\n}\n"
     "if (i % 32 == 0) out[i] = sums[i];",
     "WRITE", "READ", 10, 8, "'sums' (256 bytes)", "other operation of wave "},
    // Lanes 32 to 63 are of the same wave only where it has 64.
    {"WaveOperationsForAnotherWaveSize",
     "__shared__ int sums[64];\nconst int i = threadIdx.x;\nsums[i] = i;\n"
     "if (edge == 0) __syncthreads(); else __syncwarp();\nout[i] = sums[i ^ 32];",
     "WRITE",
     "READ",
     4,
     6,
     "'sums' (256 bytes)",
     "of waves ",
     {sm_80, gfx1100}},
    {"TwoThreadsWriteOneElement",
     "__shared__ int flags[32];\nconst int i = threadIdx.x;\n"
     "if (edge == 1 || i % 2 == 0) flags[i / 2] = 1;\n__syncthreads();\nout[i] = flags[i / 2];",
     "WRITE", "WRITE", 4, 4, "'flags' (128 bytes)"},
    {"LastTileOnly",
     "__shared__ int tile[64];\nconst int i = threadIdx.x, all = 150;\n"
     "for (int start = 0; start < all; start += 64) {\n"
     "  if (start + i < all) tile[i] = i;\n"
     "  if (edge == 0 || start + 64 <= all) __syncthreads();\n"
     "  out[i] = tile[(i + 1) % (all - start < 64 ? all - start : 64)];\n"
     "  __syncthreads();\n}",
     "WRITE", "READ", 5, 7, "'tile' (256 bytes)"},
    {"AtomicsAndAPlainRead",
     "__shared__ int count;\nif (threadIdx.x == 0) count = 0;\n__syncthreads();\n"
     "atomicAdd(&count, 1);\nif (edge == 0) __syncthreads();\nout[threadIdx.x] = count;",
     "ATOMIC OPERATION", "READ", 5, 7, "'count' (4 bytes)"},
    {"DynamicMemoryAndVectors",
     "extern __shared__ float4 rest[];\nrest[threadIdx.x] = make_float4(1, 2, 3, 4);\n"
     "if (edge == 0) __syncthreads();\nout[threadIdx.x] = int(rest[63 - threadIdx.x].z);",
     "WRITE", "READ", 3, 5, "dynamic shared memory"},
    {"Bytes",
     "__shared__ unsigned char bytes[64];\nbytes[threadIdx.x] = 1;\n"
     "if (edge == 1 && threadIdx.x < 2) bytes[0] = 2;\nout[threadIdx.x] = bytes[threadIdx.x];",
     "WRITE", "WRITE", 4, 4, "byte 0 of 'bytes' (64 bytes)"},
    // The writer has read last itself.
    {"EarlierReaders",
     "__shared__ int value;\nif (threadIdx.x == 0) value = 1;\n__syncthreads();\n"
     "int sum = value;\nif (edge == 0) __syncthreads();\n"
     "if (threadIdx.x == 0) { sum += value; value = sum; }\nout[threadIdx.x] = sum;",
     "WRITE", "READ", 7, 5, "'value' (4 bytes)"},
    {"CopyMemory",
     "__shared__ int tile[64];\nif (threadIdx.x == 0) __builtin_memcpy(tile, out, n * 4);\n"
     "if (edge == 0) __syncthreads();\nout[threadIdx.x] = tile[threadIdx.x];",
     "READ", "WRITE", 5, 3, "byte 4 of 'tile'"},
    {"CopyNotWaitedFor",
     "__shared__ int tile[64];\n"
     "greta_host::copy_async(&tile[threadIdx.x], out + threadIdx.x, 4);\n"
     "greta_host::copy_commit();\ngreta_host::copy_wait(edge);\n"
     "out[threadIdx.x] = tile[threadIdx.x];\ngreta_host::copy_wait(0);",
     "READ",
     "ASYNCHRONOUS COPY",
     6,
     3,
     "'tile' (256 bytes)",
     "the copy has not been waited for",
     {sm_80}},
    {"CopyOfAnotherThread",
     "__shared__ int tile[64];\n"
     "greta_host::copy_async(&tile[threadIdx.x], out + threadIdx.x, 4);\n"
     "greta_host::copy_wait_all();\nif (edge == 0) __syncthreads();\n"
     "const int v = tile[63 - threadIdx.x];\n__syncthreads();\nout[threadIdx.x] = v;",
     "ASYNCHRONOUS COPY",
     "READ",
     3,
     6,
     "'tile' (256 bytes)",
     "lies between them",
     {sm_80}},
    // One wave fills the tile for the other.
    {"BarrierForSomeThreads",
     "__shared__ int tile[32];\nconst int lane = threadIdx.x % 32;\n"
     "for (int step = 0; step < 3; ++step) {\n  if (threadIdx.x < 32) {\n"
     "    if (edge == 0 || step == 0) greta_host::barrier_sync(2, 64);\n"
     "    tile[lane] = step;\n    greta_host::barrier_arrive(1, 64);\n  } else {\n"
     "    if (edge == 0 || step == 0) greta_host::barrier_arrive(2, 64);\n"
     "    greta_host::barrier_sync(1, 64);\n    out[lane] = tile[31 - lane];\n  }\n}",
     "READ",
     "WRITE",
     12,
     7,
     "'tile' (128 bytes)",
     "of waves ",
     {sm_80}},
};

INSTANTIATE_TEST_SUITE_P(All, HipHostRace, ::testing::ValuesIn(races),
                         [](const auto& test) { return test.param.name; });

TEST_P(HipHostRace, IsReportedWithBothAccesses) {
  const RaceCase& race = GetParam();
  for (const Imitated device : race.devices) {
    SCOPED_TRACE(static_cast<int>(device));
    const auto right = run_races(kernel_with(race.body, 0), device, 64, 1024);
    EXPECT_TRUE(right.ok()) << right.output << right.errors;
    EXPECT_EQ(right.errors, "");

    const auto wrong = run_races(kernel_with(race.body, 1), device, 64, 1024);
    EXPECT_EQ(wrong.signal, SIGABRT) << wrong.output << wrong.errors;
    const auto second = wrong.errors.find("previous " + race.earlier + " by thread (");
    ASSERT_NE(second, std::string::npos) << wrong.errors;
    const std::string first = wrong.errors.substr(0, second), rest = wrong.errors.substr(second);
    EXPECT_NE(first.find("\n" + race.later + " by thread ("), std::string::npos) << first;
    EXPECT_NE(first.find(race.array), std::string::npos) << first;
    EXPECT_NE(first.find(fmt::format("test.hip:{}\n", race.line)), std::string::npos) << first;
    EXPECT_NE(rest.find(fmt::format("test.hip:{}\n", race.earlier_line)), std::string::npos)
        << rest;
    EXPECT_NE(rest.find(race.order), std::string::npos) << rest;
    EXPECT_NE(rest.find("of the kernel test\n"), std::string::npos) << rest;
    EXPECT_EQ(sanitizer_summary(wrong.errors),
              fmt::format("hip-host: data-race at test.hip:{} in test", race.line))
        << wrong.errors;
  }
}

TEST(HipHostRaces, StacksHaveTheCallers) {
  const std::string text =
      "__device__ __noinline__ void put(int* at, int value) {\n  *at = value;\n}\n"
      "__device__ __noinline__ int twice(int* at) {\n  put(at, 1);\n  return *at + 1;\n}\n"
      "extern \"C\" __global__ void test(int* out, int n) {\n  __shared__ int one;\n"
      "  out[threadIdx.x] = twice(&one);\n}\n";
  const auto wrong = run_races(text);
  EXPECT_EQ(wrong.signal, SIGABRT);
  const auto put = wrong.errors.find("test.hip:2\n"), caller = wrong.errors.find("test.hip:5\n"),
             kernel = wrong.errors.find("test.hip:10\n");
  ASSERT_NE(kernel, std::string::npos) << wrong.errors;
  EXPECT_LT(put, caller);
  EXPECT_LT(caller, kernel);
}

TEST(HipHostRaces, OrderedAccessesPassInEveryShape) {
  const std::string text = R"(
__device__ int deep(int* tile, int depth) {
  if (depth == 0) return __shfl_xor(tile[threadIdx.x], 1);
  __syncthreads();
  return deep(tile, depth - 1) + 1;
}
extern "C" __global__ void test(int* out, int n) {
  extern __shared__ int rest[];
  __shared__ int tile[512];
  __shared__ unsigned arrived;
  const int i = threadIdx.x;
  if (i == 0) arrived = 0;
  for (int round = 0; round < 20; ++round) {
    tile[i] = rest[i] = round;
    __syncthreads();
    tile[i] += __ballot(i & 1) != 0 ? deep(tile, round % 4) : 0;
    __syncthreads();
    atomicMax(&rest[0], tile[i]);
    __syncthreads();
  }
  rest[i] = i;  // The last thread to arrive sees what all others wrote.
  __threadfence_block();
  if (atomicAdd(&arrived, 1U) == blockDim.x - 1) {
    int sum = 0;
    for (int k = 0; k < int(blockDim.x); ++k) sum += rest[k];
    atomicAdd(out + n - 1, sum);
  }
})";
  for (const Imitated device : {sm_80, gfx942}) {
    for (const unsigned threads : {1U, 50U, 512U}) {
      const auto right = run_races(text, device, threads, 4 * threads);
      EXPECT_TRUE(right.ok()) << right.output << right.errors;
      EXPECT_EQ(right.output, fmt::format("{}\n", 1 + threads * (threads - 1)));
    }
  }
}

}  // namespace
}  // namespace greta::test::races_test
