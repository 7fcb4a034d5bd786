// Protects: asynchronous copies on hip-host. Their data arrives at the matching wait and not
// earlier.

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::copies_test {
namespace {

constexpr std::uint32_t untouched = 0xFFFFFFFF;

std::vector<std::uint32_t> numbers_up_to(unsigned count) {
  std::vector<std::uint32_t> numbers(count);
  for (unsigned i = 0; i < count; ++i) numbers[i] = 1000 + i;
  return numbers;
}

TEST(HipHostCopies, CopyAsyncArrivesWithItsGroup) {
  HostDevice host(sm_80);
  const auto in = host.upload(numbers_up_to(4 * 64));
  const auto out = host.upload(std::vector<std::uint32_t>(64 * 16));
  // Three groups of one copy each. After each wait the thread reads all of them.
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[4][64];
  const int i = threadIdx.x;
  for (int group = 0; group < 3; ++group) {
    greta_host::copy_async(&tile[group][i], in + 64 * group + i, 4);
    greta_host::copy_commit();
  }
  greta_host::copy_async(&tile[3][i], in + 64 * 3 + i, 4);  // in no group
  for (int step = 0; step < 4; ++step) {
    if (step < 3) greta_host::copy_wait(2 - step);
    else greta_host::copy_wait_all();
    for (int group = 0; group < 4; ++group) out[16 * i + 4 * step + group] = tile[group][i];
  }
})",
                              {64, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 64; ++i) {
    for (unsigned step = 0; step < 4; ++step) {
      for (unsigned group = 0; group < 4; ++group) {
        const std::uint32_t expected = group <= step ? 1000 + 64 * group + i : untouched;
        ASSERT_EQ(result[16 * i + 4 * step + group], expected)
            << "thread " << i << " wait " << step << " group " << group;
      }
    }
  }
}

TEST(HipHostCopies, CopyAsyncOfEverySizeWritesZerosAfterWhatIsValid) {
  HostDevice host(sm_80);
  std::vector<std::uint8_t> bytes(64);
  for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::uint8_t>(1 + i);
  const auto in = host.upload(bytes);
  const auto out = host.upload(std::vector<std::uint8_t>(3 * 17 * 16));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const unsigned char* in, unsigned char* out) {
  __shared__ __attribute__((aligned(16))) unsigned char tile[16];
  int row = 0;
  for (unsigned bytes = 4; bytes <= 16; bytes *= 2) {
    for (unsigned valid = 0; valid <= bytes; ++valid, ++row) {
      for (int i = 0; i < 16; ++i) tile[i] = 200;
      greta_host::copy_async(tile, valid == 0 ? nullptr : in + 16, bytes, valid);
      greta_host::copy_wait_all();
      for (int i = 0; i < 16; ++i) out[16 * row + i] = tile[i];
    }
  }
})",
                              {1, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint8_t>(out);
  unsigned row = 0;
  for (unsigned size = 4; size <= 16; size *= 2) {
    for (unsigned valid = 0; valid <= size; ++valid, ++row) {
      for (unsigned i = 0; i < 16; ++i) {
        const unsigned expected = i >= size ? 200 : i < valid ? 17 + i : 0;
        ASSERT_EQ(result[16 * row + i], expected) << size << " bytes, " << valid << " valid";
      }
    }
  }
}

// A pipeline as in GEMM kernels, correct and with a wait that is one group too weak.
TEST(HipHostCopies, AWeakWaitIsSeen) {
  HostDevice host(sm_80);
  const auto in = host.upload(numbers_up_to(64 * 8));
  const auto sums = [&](int pending) {
    const auto out = host.upload(std::vector<std::uint32_t>(64));
    host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out, int pending) {
  __shared__ uint32_t tile[3][64];
  const int i = threadIdx.x;
  const auto load = [&](int step) {
    if (step < 8) greta_host::copy_async(&tile[step % 3][i], in + 64 * step + i, 4);
    greta_host::copy_commit();
  };
  load(0);
  load(1);
  uint32_t sum = 0;
  for (int step = 0; step < 8; ++step) {
    greta_host::copy_wait(pending);
    __syncthreads();
    load(step + 2);
    sum += tile[step % 3][63 - i];
  }
  out[i] = sum;
})",
                                {64, 1, 1}),
             {1, 1, 1}, in, out, pending)
        .value();
    return host.download<std::uint32_t>(out);
  };
  std::vector<std::uint32_t> expected(64);
  for (unsigned i = 0; i < 64; ++i) {
    for (unsigned step = 0; step < 8; ++step) expected[i] += 1000 + 64 * step + 63 - i;
  }
  EXPECT_EQ(sums(1), expected);
  EXPECT_NE(sums(2), expected);
}

// A wave's copies end with the phase of the barrier at which its threads have arrived with them.
TEST(HipHostCopies, CopiesOfThreadsArriveAtACountedBarrier) {
  HostDevice host(sm_80);
  const auto in = host.upload(numbers_up_to(2 * 2 * 32));
  const auto out = host.upload(std::vector<std::uint32_t>(2 * 32));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[64];
  __shared__ uint64_t full, empty;
  const int i = threadIdx.x;
  if (i == 0) {
    greta_host::counted_open(&full, 32);
    greta_host::counted_open(&empty, 32);
  }
  __syncthreads();
  if (i >= 32) {
    for (int step = 0; step < 2; ++step) {
      if (step > 0) greta_host::counted_wait(&empty, 0);
      const int lane = i - 32;
      greta_host::copy_async(&tile[2 * lane], in + 64 * step + 2 * lane, 4);
      greta_host::copy_async(&tile[2 * lane + 1], in + 64 * step + 2 * lane + 1, 4);
      greta_host::counted_arrive_copied(&full);
    }
    return;
  }
  greta_host::counted_wait(&full, 0);
  out[i] = tile[i];
  greta_host::counted_arrive(&empty);
  greta_host::counted_wait(&full, 1);
  out[32 + i] = tile[63 - i];
})",
                              {64, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 32; ++i) {
    ASSERT_EQ(result[i], 1000 + i);
    ASSERT_EQ(result[32 + i], 1000 + 64 + 63 - i);
  }
}

// And not before, so that a missing wait is seen.
TEST(HipHostCopies, CopiesThatArriveAreWrittenAtTheEndOfThePhase) {
  HostDevice host(sm_80);
  const auto in = host.upload(numbers_up_to(32));
  const auto out = host.upload(std::vector<std::uint32_t>(2 * 32));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[32];
  __shared__ uint64_t full;
  const int i = threadIdx.x;
  if (i == 0) greta_host::counted_open(&full, 64);
  __syncthreads();
  greta_host::copy_async(&tile[i], in + i, 4);
  greta_host::counted_arrive_copied(&full);
  __syncthreads();
  out[i] = tile[31 - i];
  greta_host::counted_arrive(&full);
  greta_host::counted_wait(&full, 0);
  out[32 + i] = tile[31 - i];
})",
                              {32, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 32; ++i) {
    ASSERT_EQ(result[i], 0xffffffff);
    ASSERT_EQ(result[32 + i], 1000 + 31 - i);
  }
}

TEST(HipHostCopies, LoadToSharedPutsLanesBehindEachOther) {
  HostDevice host(gfx942);
  const auto in = host.upload(numbers_up_to(256));
  const auto out = host.upload(std::vector<std::uint32_t>(128 * 6));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out) {
  __shared__ uint32_t tile[2][128];
  const int i = threadIdx.x, first = i / warpSize * warpSize;
  greta_host::load_to_shared(in + 2 * i, &tile[0][first], 4);
  greta_host::load_to_shared(i % 2 == 0 ? in + i : nullptr, &tile[1][first], 4);
  for (int step = 0; step < 3; ++step) {
    if (step > 0) greta_host::load_wait(2 - step);
    for (int row = 0; row < 2; ++row) out[6 * i + 2 * step + row] = tile[row][i];
  }
})",
                              {128, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 128; ++i) {
    const std::uint32_t one = 1000 + 2 * i, two = i % 2 == 0 ? 1000 + i : untouched;
    const std::vector<std::uint32_t> expected{untouched, untouched, one, untouched, one, two};
    for (unsigned e = 0; e < 6; ++e) ASSERT_EQ(result[6 * i + e], expected[e]) << i;
  }
}

TEST(HipHostCopies, WideLoadsPutLanesBehindEachOther) {
  HostDevice host(gfx942);
  const auto in = host.upload(numbers_up_to(256));
  const auto out = host.upload(std::vector<std::uint32_t>(256));
  host.run(HostDevice::source(R"(
extern "C" __global__ void test(const uint32_t* in, uint32_t* out) {
  __shared__ __attribute__((aligned(16))) uint32_t tile[256];
  const int i = threadIdx.x;
  greta_host::load_to_shared(in + 4 * (63 - i), tile, 16);
  greta_host::load_wait(0);
  for (int e = 0; e < 4; ++e) out[4 * i + e] = tile[4 * i + e];
})",
                              {64, 1, 1}),
           {1, 1, 1}, in, out)
      .value();
  const auto result = host.download<std::uint32_t>(out);
  for (unsigned i = 0; i < 64; ++i) {
    for (unsigned e = 0; e < 4; ++e) ASSERT_EQ(result[4 * i + e], 1000 + 4 * (63 - i) + e) << i;
  }
}

/// A tensor map in an argument block.
struct alignas(device::tensor_map_alignment) EncodedMap {
  std::array<std::byte, device::tensor_map_bytes> bytes;
};

// Chunk c of the line at byte 128 l of shared memory is at c ^ l % 8, wherever the box starts.
TEST(HipHostCopies, ChunksOfABoxTradePlacesByTheirAddress) {
  constexpr unsigned rows = 20, columns = 104, box_rows = 10, first_row = 12, first_column = 48;
  HostDevice host(sm_80);
  std::vector<std::uint16_t> matrix(rows * columns);
  for (unsigned i = 0; i < matrix.size(); ++i) matrix[i] = static_cast<std::uint16_t>(1 + i);
  const auto in = host.upload(matrix);
  const TensorMap map{
      .columns = columns, .rows = rows, .row_bytes = 2 * columns, .box_rows = box_rows};
  EncodedMap encoded{};
  const auto stream = host.device().create_stream().value();
  stream->encode(map, in->address(), encoded.bytes.data()).value();
  for (const unsigned start : {0U, 128U, 384U, 896U, 1024U, 1152U}) {
    const auto out = host.upload(std::vector<std::uint16_t>(2048));
    host.run(HostDevice::source(R"(
extern "C" __global__ void test(const greta_host::TensorMap map, unsigned short* out, unsigned start) {
  __shared__ __attribute__((aligned(1024))) unsigned char tile[4096];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    greta_host::counted_open(&barrier, 1);
    greta_host::counted_expect(&barrier, 10 * 128);
    greta_host::copy_box(tile, start, map, 48, 12, &barrier);
  }
  __syncthreads();
  greta_host::counted_wait(&barrier, 0);
  const unsigned short* const lines = reinterpret_cast<const unsigned short*>(tile);
  for (unsigned i = threadIdx.x; i < 640; i += 32) out[start / 2 + i] = lines[start / 2 + i];
})",
                                {32, 1, 1}),
             {1, 1, 1}, encoded, out, start)
        .value();
    const auto result = host.download<std::uint16_t>(out);
    for (unsigned r = 0; r < box_rows; ++r) {
      for (unsigned c = 0; c < 64; ++c) {
        const unsigned line = start / 128 + r, row = first_row + r, column = first_column + c;
        const bool inside = row < rows && column < columns;
        const unsigned expected = inside ? 1 + row * columns + column : 0;
        ASSERT_EQ(result[line * 64 + (c / 8 ^ line % 8) * 8 + c % 8], expected)
            << "start " << start << " row " << r << " column " << c;
      }
    }
  }
}

TEST(HipHostCopies, MisuseIsTold) {
  struct Case {
    Imitated device;
    std::string body, message;
  };
  const Case cases[] = {
      {sm_80, "greta_host::copy_async(out, out, 4);", "the target is not in shared memory"},
      {sm_80, "__shared__ int t[8]; greta_host::copy_async(t + 1, out, 8);",
       "the target is not aligned to the copy's size"},
      {sm_80, "__shared__ int t[8]; greta_host::copy_async(t, out + 1, 8);",
       "the source is not aligned to the copy's size"},
      {sm_80, "__shared__ int t[8]; greta_host::copy_async(t, out, 12);",
       "copies 4, 8 or 16 bytes"},
      {sm_80, "__shared__ int t[8]; greta_host::copy_async(t, out, 4, 5);",
       "reads more than it writes"},
      {gfx942, "__shared__ int t[128]; greta_host::load_to_shared(out, t + threadIdx.x, 4);",
       "lanes of a wave have different targets"},
      {gfx942, "__shared__ int t[512]; greta_host::load_to_shared(out, t, 8);",
       "loads 4 or 16 bytes for each lane"},
  };
  for (const Case& misuse : cases) {
    HostDevice host(misuse.device);
    const auto out = host.upload(std::vector<int>(64));
    const auto ran = host.run(
        HostDevice::source("extern \"C\" __global__ void test(int* out) {\n" + misuse.body + "\n}",
                           {64, 1, 1}),
        {1, 1, 1}, out);
    ASSERT_FALSE(ran) << misuse.body;
    EXPECT_NE(ran.failure().message.find("at test.hip:2: " + misuse.message), std::string::npos)
        << ran.failure().message;
  }
}

}  // namespace
}  // namespace greta::test::copies_test
