// Protects: clusters of blocks on hip-host: ranks, what blocks see of each other's shared memory
// and when, what they send and copy to each other, and the order in which they run.

#include <algorithm>
#include <set>

#include "runtime/device/hip/host/stack_limits.hpp"
#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::clusters_test {
namespace {

constexpr std::uint32_t untouched = 0xFFFFFFFF;

/// Runs a kernel of 32 threads with a buffer of numbers and another argument, and returns the
/// buffer.
std::vector<std::uint32_t> run(const std::string& text, Grid grid, std::size_t numbers,
                               int argument) {
  HostDevice host(sm_90);
  const auto out = host.upload(std::vector<std::uint32_t>(numbers));
  host.run(HostDevice::source(text, {32, 1, 1}), grid, out, argument).value();
  return host.download<std::uint32_t>(out);
}

// Each block reads the numbers of all blocks of its cluster, of which there are two along each
// dimension but y.
constexpr const char* reading = R"(
extern "C" __global__ void __cluster_dims__(2, 1, 2) test(uint32_t* out, int relaxed) {
  __shared__ uint32_t number[32];
  const uint32_t block = blockIdx.x + 4 * (blockIdx.y + 3 * blockIdx.z);
  number[threadIdx.x] = 100 * block + threadIdx.x;
  if (relaxed != 0) greta_host::cluster_arrive_relaxed();
  else greta_host::cluster_arrive();
  greta_host::cluster_wait();
  for (uint32_t rank = 0; rank < 4; ++rank) {
    out[(block * 4 + rank) * 32 + threadIdx.x] = greta_host::place_in_block(rank, number)[31 - threadIdx.x];
  }
  greta_host::cluster_arrive_relaxed();
  greta_host::cluster_wait();
})";

TEST(HipHostClusters, BlocksReadWhatOthersHaveShown) {
  for (const bool relaxed : {false, true}) {
    const auto out = run(reading, {4, 3, 4}, 48 * 4 * 32, relaxed ? 1 : 0);
    for (std::uint32_t block = 0; block < 48; ++block) {
      const std::uint32_t x = block % 4, y = block / 4 % 3, z = block / 12;
      for (std::uint32_t rank = 0; rank < 4; ++rank) {
        const std::uint32_t other = x / 2 * 2 + rank % 2 + 4 * (y + 3 * (z / 2 * 2 + rank / 2));
        const bool seen = !relaxed || other == block;
        ASSERT_EQ(out[(block * 4 + rank) * 32], seen ? 100 * other + 31 : untouched)
            << block << " " << rank << " " << relaxed;
      }
    }
  }
}

// Blocks send to each other's `place`, where each has written 7 before with `writes`.
constexpr const char* sending = R"(
extern "C" __global__ void __cluster_dims__(2, 1, 1) test(uint32_t* out, int how) {
  __shared__ __attribute__((aligned(16))) uint32_t place[4];
  __shared__ uint64_t barrier;
  const bool writes = how % 2 == 1, relaxed = how / 2 == 1;
  if (writes && threadIdx.x < 4) place[threadIdx.x] = 7;
  if (threadIdx.x == 0) {
    greta_host::counted_open(&barrier, 1);
    greta_host::show_barriers();
    greta_host::counted_expect(&barrier, 16);
  }
  __syncwarp();
  if (relaxed) greta_host::cluster_arrive_relaxed();
  else greta_host::cluster_arrive();
  greta_host::cluster_wait();
  const uint32_t four[4] = {blockIdx.x, 10, 20, 30 + blockIdx.x};
  if (threadIdx.x == 0) greta_host::send(1 - blockIdx.x, place, four, &barrier);
  greta_host::counted_wait(&barrier, 0);
  if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = place[threadIdx.x];
})";

// A block's own store that is not ordered before what others send comes after it.
TEST(HipHostClusters, StoresBeforeARelaxedArrivalTakeThePlaceOfWhatIsSent) {
  const std::vector<std::uint32_t> sent{1, 10, 20, 31, 0, 10, 20, 30}, own(8, 7);
  for (const bool writes : {false, true}) {
    for (const bool relaxed : {false, true}) {
      EXPECT_EQ(run(sending, {2, 1, 1}, 8, (writes ? 1 : 0) + (relaxed ? 2 : 0)),
                writes && relaxed ? own : sent)
          << writes << relaxed;
    }
  }
}

// What is received again in a place that only others write is not taken for an own store, and what
// is read is what has arrived: nothing before the wait.
TEST(HipHostClusters, WhatIsSentArrivesWithItsPhase) {
  const auto out = run(R"(
extern "C" __global__ void __cluster_dims__(2, 1, 1) test(uint32_t* out, int) {
  __shared__ __attribute__((aligned(16))) uint32_t place[4];
  __shared__ uint64_t barrier, taken;
  if (threadIdx.x == 0) {
    greta_host::counted_open(&barrier, 1);
    greta_host::counted_open(&taken, 1);
    greta_host::show_barriers();
  }
  __syncwarp();
  greta_host::cluster_arrive_relaxed();
  greta_host::cluster_wait();
  for (uint32_t turn = 0; turn < 4; ++turn) {
    const uint32_t four[4] = {100 * turn, 1, 2, 3};
    if (blockIdx.x == 0) {
      if (threadIdx.x == 0) greta_host::send(1, place, four, &barrier);
      greta_host::counted_wait(&taken, turn % 2);
    } else {
      if (turn > 0 && threadIdx.x == 0) out[8 + turn] = place[0];
      if (threadIdx.x == 0) greta_host::counted_expect(&barrier, 16);
      greta_host::counted_wait(&barrier, turn % 2);
      __syncwarp();
      if (threadIdx.x == 0) {
        out[turn] = place[0];
        out[4 + turn] = place[3];
        greta_host::counted_arrive_at(0, &taken);
      }
    }
  }
})",
                       {2, 1, 1}, 12, 0);
  EXPECT_EQ(std::vector(out.begin(), out.begin() + 8),
            (std::vector<std::uint32_t>{0, 100, 200, 300, 3, 3, 3, 3}));
  for (std::uint32_t turn = 1; turn < 4; ++turn) {
    // Either the last number, or the next one is under way.
    EXPECT_TRUE(out[8 + turn] == 100 * (turn - 1) || out[8 + turn] == untouched) << out[8 + turn];
  }
}

/// A tensor map in an argument block.
struct alignas(device::tensor_map_alignment) EncodedMap {
  std::array<std::byte, device::tensor_map_bytes> bytes;
};

// Block 0 of four copies a box to the blocks of `blocks`, and they wait for it.
TEST(HipHostClusters, CopiesGoToTheBlocksOfTheMask) {
  HostDevice host(sm_90);
  std::vector<std::uint16_t> matrix(8 * 64);
  for (unsigned i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<std::uint16_t>(1 + i);
  const auto in = host.upload(matrix);
  const TensorMap map{.columns = 64, .rows = 8, .row_bytes = 128, .box_rows = 8};
  EncodedMap encoded{};
  const auto stream = host.device().create_stream().value();
  stream->encode(map, in->address(), encoded.bytes.data()).value();
  const auto source = HostDevice::source(R"(
extern "C" __global__ void __cluster_dims__(1, 4, 1) test(const greta_host::TensorMap map, uint32_t* out, int blocks) {
  extern __shared__ __attribute__((aligned(1024))) unsigned char tile[];
  __shared__ uint64_t barrier;
  const bool gets = (blocks >> blockIdx.y & 1) != 0;
  if (threadIdx.x == 0) {
    greta_host::counted_open(&barrier, 1);
    greta_host::show_barriers();
    if (gets) greta_host::counted_expect(&barrier, 1024);
  }
  __syncwarp();
  greta_host::cluster_arrive_relaxed();
  greta_host::cluster_wait();
  if (blockIdx.y == 0 && threadIdx.x == 0) {
    greta_host::copy_box_to(unsigned(blocks), tile, 0, map, 0, 0, &barrier);
  }
  if (gets) greta_host::counted_wait(&barrier, 0);
  out[32 * blockIdx.y + threadIdx.x] = reinterpret_cast<uint16_t*>(tile)[2 * threadIdx.x];
})",
                                         {32, 1, 1}, 2048);
  for (const int blocks : {0b0001, 0b0110, 0b1111, 0b1000}) {
    const auto out = host.upload(std::vector<std::uint32_t>(128));
    host.run(source, {1, 4, 1}, encoded, out, blocks).value();
    const auto got = host.download<std::uint32_t>(out);
    for (int block = 0; block < 4; ++block) {
      const bool gets = (blocks >> block & 1) != 0;
      for (unsigned i = 0; i < 32; ++i) {
        ASSERT_EQ(got[static_cast<unsigned>(block) * 32 + i], gets ? 1 + 2 * i : 0xFFFF) << block;
      }
    }
  }
}

// Threads that have ended count as arrived, before and after they could.
TEST(HipHostClusters, EndedThreadsAreNotWaitedFor) {
  const auto out = run(R"(
extern "C" __global__ void __cluster_dims__(4, 1, 1) test(uint32_t* out, int) {
  __shared__ uint32_t number;
  if (threadIdx.x >= 8) return;
  if (threadIdx.x == 0) number = blockIdx.x;
  greta_host::cluster_arrive();
  if (threadIdx.x >= 4) return;
  greta_host::cluster_wait();
  out[4 * blockIdx.x + threadIdx.x] = *greta_host::place_in_block(threadIdx.x, &number);
  greta_host::cluster_arrive();
  greta_host::cluster_wait();
})",
                       {4, 1, 1}, 16, 0);
  for (std::uint32_t i = 0; i < 16; ++i) EXPECT_EQ(out[i], i % 4) << i;
}

// A kernel whose blocks end while others still read their shared memory reads what nobody wrote, in
// every order of the blocks, or is refused.
TEST(HipHostClusters, ABlockThatEndsTakesItsMemoryAway) {
  const std::string text = R"(
extern "C" __global__ void __cluster_dims__(2, 1, 1) test(uint32_t* out, int late) {
  __shared__ uint32_t number[32];
  number[threadIdx.x] = 5;
  greta_host::cluster_arrive();
  greta_host::cluster_wait();
  const uint32_t* const other = greta_host::place_in_block(1 - blockIdx.x % 2, number);
  if (late == 0) {
    greta_host::cluster_arrive();
    greta_host::cluster_wait();
  }
  __syncthreads();
  out[32 * blockIdx.x + threadIdx.x] = *other;
  if (late == 2) {
    greta_host::cluster_arrive_relaxed();
    greta_host::cluster_wait();
  }
})";
  const auto right = run(text, {8, 1, 1}, 256, 2);
  EXPECT_EQ(std::count(right.begin(), right.end(), 5), 256);
  const auto early = run(text, {8, 1, 1}, 256, 0);  // pointers are older than the end
  for (int cluster = 0; cluster < 4; ++cluster) {
    const auto first = early.begin() + cluster * 64;
    EXPECT_EQ(std::count(first, first + 64, untouched), 32) << cluster;
  }
  HostDevice host(sm_90);
  const auto out = host.upload(std::vector<std::uint32_t>(256));
  const auto refused = host.run(HostDevice::source(text, {32, 1, 1}), {8, 1, 1}, out, 1);
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("mapa at test.hip:7: the other block has ended"),
            std::string::npos)
      << refused.failure().message;
}

// Numbers of the blocks in the order in which they begin, of many clusters.
TEST(HipHostClusters, BlocksRunInVariousOrders) {
  constexpr unsigned clusters = 32;
  const auto out = run(R"(
extern "C" __global__ void __cluster_dims__(1, 1, 4) test(uint32_t* out, int) {
  if (threadIdx.x == 0) out[4 * blockIdx.x + atomicAdd(out + 128 + blockIdx.x, 1U)] = blockIdx.z;
  greta_host::cluster_arrive();
  greta_host::cluster_wait();
})",
                       {clusters, 1, 4}, 128 + clusters, 0);
  std::set<std::vector<std::uint32_t>> orders;
  for (unsigned i = 0; i < clusters; ++i) {
    std::vector<std::uint32_t> order(out.begin() + 4 * i, out.begin() + 4 * i + 4);
    orders.insert(order);
    std::sort(order.begin(), order.end());
    ASSERT_EQ(order, (std::vector<std::uint32_t>{0, 1, 2, 3})) << i;
  }
  EXPECT_EQ(orders.size(), 8U) << "four first blocks, forward and backward";
}

// A process with as few mappings as Linux allows by default has stacks for all threads.
TEST(HipHostClusters, TheLargestOnesRun) {
  HostDevice host(sm_90);
  constexpr unsigned threads = 1024, blocks = 16, clusters = 8;
  const auto out = host.upload(std::vector<std::uint32_t>(clusters));
  const auto source = HostDevice::source(R"(
extern "C" __global__ void __cluster_dims__(16, 1, 1) test(uint32_t* out) {
  greta_host::cluster_arrive();
  greta_host::cluster_wait();
  atomicAdd(out + blockIdx.x / 16, 1U);
})",
                                         {threads, 1, 1});
  host.run(source, {clusters * blocks, 1, 1}, out).value();
  EXPECT_EQ(host.download<std::uint32_t>(out),
            std::vector<std::uint32_t>(clusters, threads * blocks));
}

// Executors with 2 to 64 workers have stacks for all clusters. Stacks that a worker has kept may be
// those of blocks that the next launch does not have. The executor of earlier launches is one more
// worker that keeps some.
TEST(HipHostClusters, StacksFitTheMappingsOfAProcess) {
  using namespace device::hip::host;
  constexpr std::uint64_t mappings = 65'530, beside = 5'000, most_threads = 16 * 1024;
  for (unsigned workers = 2; workers <= 64; ++workers) {
    const std::uint64_t kept = kept_stacks(workers);
    for (std::uint64_t threads = 1; threads <= most_threads; ++threads) {
      const unsigned running = workers_for(threads, workers);
      ASSERT_GE(running, 1U) << workers << " " << threads;
      ASSERT_LE(running, workers) << threads;
      const std::uint64_t stacks =
          running * std::min(threads + kept, most_threads) + (workers - running + 1) * kept;
      ASSERT_LE(2 * stacks + beside, mappings) << workers << " " << threads;
    }
    EXPECT_EQ(workers_for(128, workers), workers) << "blocks of a common size use all processors";
    EXPECT_GE(kept * workers, 11'000U) << "a launch finds most of its stacks";
  }
}

struct Misuse {
  const char *body, *message;
};

constexpr Misuse misuses[] = {
    {"greta_host::cluster_arrive();\ngreta_host::cluster_arrive();",
     "barrier.cluster.arrive at test.hip:3: the thread arrives again and has not waited"},
    {"greta_host::cluster_wait();",
     "barrier.cluster.wait at test.hip:2: the thread has not arrived"},
    {"if (threadIdx.x == 0) greta_host::cluster_arrive();\n__syncthreads();",
     "wait in __syncthreads at test.hip:3; thread (0,0,0) waits in barrier.cluster.arrive"},
    {"if (blockIdx.x == 0) __syncthreads();\nelse if (threadIdx.x == 0) __syncthreads();\n"
     "greta_host::cluster_arrive();\ngreta_host::cluster_wait();",
     "wait in barrier.cluster.wait at test.hip:5; no thread of block (1,0,0) can go on"},
    {"greta_host::place_in_block(2, &barrier);", "the cluster has no such block"},
    {"greta_host::place_in_block(1, out);", "the place is not in shared memory"},
    {"greta_host::send(0, words + 1, words, &barrier);", "the target is not aligned to 16 bytes"},
    {"if (threadIdx.x == 0) greta_host::counted_open(&barrier, 64);\n"
     "greta_host::cluster_arrive_relaxed();\ngreta_host::cluster_wait();\n"
     "greta_host::counted_arrive_at(1 - blockIdx.x, &barrier);",
     "the other block has not shown the barrier"},
    {"if (threadIdx.x == 0) greta_host::counted_open(&barrier, 1);\n"
     "greta_host::cluster_arrive();\ngreta_host::cluster_wait();\n"
     "if (threadIdx.x == 0) greta_host::send(1 - blockIdx.x, words, words, &barrier);\n"
     "greta_host::cluster_arrive();\ngreta_host::cluster_wait();",
     "has ended, and what others of its cluster copy or send to its shared memory is still under "
     "way"},
};

TEST(HipHostClusters, MisuseIsTold) {
  for (const auto& [body, message] : misuses) {
    HostDevice host(sm_90);
    const auto out = host.upload(std::vector<int>(4));
    const auto ran = host.run(
        HostDevice::source(
            "extern \"C\" __global__ void __cluster_dims__(2, 1, 1) test(int* out) { __shared__ "
            "uint64_t barrier; __shared__ __attribute__((aligned(16))) int words[8];\n" +
                std::string(body) + "\n}",
            {32, 1, 1}),
        {2, 1, 1}, out);
    ASSERT_FALSE(ran) << body;
    EXPECT_NE(ran.failure().message.find(message), std::string::npos) << body << "\n"
                                                                      << ran.failure().message;
  }
}

TEST(HipHostClusters, GridsAreWholeClusters) {
  HostDevice host(sm_90);
  const auto of = [&](const std::string& dimensions, Grid grid) {
    return host.run(HostDevice::source("extern \"C\" __global__ void __cluster_dims__(" +
                                           dimensions + ") test() {}",
                                       {32, 1, 1}),
                    grid);
  };
  EXPECT_TRUE(of("2, 2, 4", {2, 4, 4}));
  for (const Grid grid : {Grid{3, 2, 4}, {2, 3, 4}, {2, 2, 2}}) {
    const auto refused = of("2, 2, 4", grid);
    ASSERT_FALSE(refused);
    EXPECT_NE(refused.failure().message.find("no whole clusters"), std::string::npos)
        << refused.failure().message;
  }
  EXPECT_FALSE(of("17, 1, 1", {17, 1, 1}));
}

}  // namespace
}  // namespace greta::test::clusters_test
