// Protects: wave operations of hip-host give the results of plain loops, for every lane and
// distance, partial waves, and lanes that have ended.

#include <functional>
#include <random>

#include "tests/device/hip_host/host_device.hpp"
#include "tests/layers.hpp"

namespace greta::test::wave_test {
namespace {

class HipHostWave : public ::testing::TestWithParam<Imitated> {
 protected:
  HostDevice host_{GetParam()};
  int wave_ = static_cast<int>(wave_of(GetParam()));
};
// One device with waves of 32, one with waves of 64.
INSTANTIATE_TEST_SUITE_P(All, HipHostWave, ::testing::Values(sm_80, gfx942), imitated_name);

std::vector<int> random_numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<int> values(count);
  for (int& value : values) value = static_cast<int>(random());
  return values;
}

/// Returns the source lane of lane `lane`; the lane itself if there is none.
using From = std::function<int(int lane, int by, int width)>;

struct Shuffle {
  const char* name;
  From from;
};

// In the order of the kernel below.
const Shuffle shuffles[] = {
    {"__shfl", [](int lane, int by, int width) { return lane / width * width + by % width; }},
    {"__shfl_up", [](int lane, int by, int width) { return lane % width < by ? lane : lane - by; }},
    {"__shfl_down",
     [](int lane, int by, int width) { return lane % width + by >= width ? lane : lane + by; }},
    {"__shfl_xor",
     [](int lane, int by, int width) {
       return (lane ^ by) / width == lane / width ? lane ^ by : lane;
     }},
};

const char* const shuffle_kernel = R"(
extern "C" __global__ void test(const int* in, int* out, int which, int width) {
  const int i = threadIdx.x, value = in[i];
  for (int by = 0; by < warpSize; ++by) {
    int& result = out[by * blockDim.x + i];
    switch (which) {
      case 0: result = __shfl(value, by, width); break;
      case 1: result = __shfl_up(value, by, width); break;
      case 2: result = __shfl_down(value, by, width); break;
      case 3: result = __shfl_xor(value, by, width); break;
      case 4: result = __shfl_sync(0xffffffff, value, by, width); break;
      case 5: result = __shfl_up_sync(0xffffffff, value, by, width); break;
      case 6: result = __shfl_down_sync(0xffffffff, value, by, width); break;
      case 7: result = __shfl_xor_sync(0xffffffff, value, by, width); break;
    }
  }
})";

TEST_P(HipHostWave, ShufflesOfEveryDistanceAndWidth) {
  // Two waves, so that reading the other's values would be detected.
  const int threads = 2 * wave_;
  const auto numbers = random_numbers(static_cast<std::size_t>(threads), 1);
  const auto in = host_.upload(numbers);
  const auto out = host_.upload(std::vector<int>(static_cast<std::size_t>(threads * wave_)));
  const auto source = HostDevice::source(shuffle_kernel, {static_cast<unsigned>(threads), 1, 1});
  for (int which = 0; which < 8; ++which) {
    const Shuffle& shuffle = shuffles[which % 4];
    for (int width = 1; width <= wave_; width *= 2) {
      host_.run(source, {1, 1, 1}, in, out, which, width).value();
      const auto result = host_.download<int>(out);
      for (int at = 0; at < threads * wave_; ++at) {
        const int by = at / threads, lane = at % threads % wave_;
        const int from = at % threads - lane + shuffle.from(lane, by, width);
        ASSERT_EQ(result[static_cast<std::size_t>(at)], numbers[static_cast<std::size_t>(from)])
            << shuffle.name << " by " << by << " width " << width << " lane " << lane;
      }
    }
  }
}

TEST_P(HipHostWave, ShufflesOfLargeTypes) {
  const auto out = host_.upload(std::vector<double>(static_cast<std::size_t>(4 * wave_)));
  host_
      .run(HostDevice::source(R"(
struct Four { double x[4]; };
extern "C" __global__ void test(Four* out) {
  const double i = threadIdx.x;
  out[threadIdx.x] = __shfl(Four{{i, i + 0.5, -i, i * i}}, warpSize - 1 - int(threadIdx.x));
})",
                              {static_cast<unsigned>(wave_), 1, 1}),
           {1, 1, 1}, out)
      .value();
  const auto result = host_.download<double>(out);
  for (int i = 0; i < wave_; ++i) {
    const double from = wave_ - 1 - i;
    const std::vector<double> expected{from, from + 0.5, -from, from * from};
    for (int e = 0; e < 4; ++e)
      ASSERT_EQ(result[static_cast<std::size_t>(4 * i + e)], expected[static_cast<std::size_t>(e)]);
  }
}

TEST_P(HipHostWave, VotesOfPartialWaves) {
  const std::string text = R"(
extern "C" __global__ void test(const int* in, unsigned long long* out) {
  const int value = in[threadIdx.x];
  unsigned long long* const mine = out + 8 * threadIdx.x;
  mine[0] = __ballot(value & 1);
  mine[1] = __any(value > 1000000000);
  mine[2] = __all(value != 0);
  mine[3] = __activemask();
  mine[4] = __ballot_sync(~0u, value & 2);
  mine[5] = __any_sync(~0u, value == 0);
  mine[6] = __all_sync(~0u, value < 2000000000);
  mine[7] = __lane_id();
})";
  for (const unsigned threads : {1U, 5U, static_cast<unsigned>(wave_), 100U, 257U}) {
    auto numbers = random_numbers(threads, threads);
    numbers[threads / 2] = 0;
    const auto in = host_.upload(numbers);
    const auto out = host_.upload(std::vector<std::uint64_t>(8 * threads));
    host_.run(HostDevice::source(text, {threads, 1, 1}), {1, 1, 1}, in, out).value();
    const auto result = host_.download<std::uint64_t>(out);
    for (unsigned i = 0; i < threads; ++i) {
      const auto first = i / static_cast<unsigned>(wave_) * static_cast<unsigned>(wave_);
      std::vector<std::uint64_t> expected(8);
      expected[2] = expected[6] = 1;
      for (unsigned lane = 0; lane < static_cast<unsigned>(wave_) && first + lane < threads;
           ++lane) {
        const int value = numbers[first + lane];
        expected[0] |= static_cast<std::uint64_t>(value & 1) << lane;
        expected[1] |= static_cast<std::uint64_t>(value > 1000000000);
        expected[2] &= static_cast<std::uint64_t>(value != 0);
        expected[3] |= std::uint64_t{1} << lane;
        expected[4] |= static_cast<std::uint64_t>((value & 2) != 0) << lane;
        expected[5] |= static_cast<std::uint64_t>(value == 0);
        expected[6] &= static_cast<std::uint64_t>(value < 2000000000);
      }
      expected[7] = i - first;
      for (unsigned e = 0; e < 8; ++e) {
        ASSERT_EQ(result[8 * i + e], expected[e]) << threads << " threads, " << i << ", " << e;
      }
    }
  }
}

// A value from an inactive lane is undefined on GPUs. Here it has a fixed pattern, which shows in
// the results.
TEST_P(HipHostWave, LanesThatEndedOrNeverWereReadAsBytesFF) {
  const auto out = host_.upload(std::vector<float>(static_cast<std::size_t>(wave_)));
  host_
      .run(HostDevice::source(R"(
extern "C" __global__ void test(float* out) {
  const int i = threadIdx.x;
  if (i % 3 == 1) return;
  out[i] = __shfl(float(i), (i + 1) % warpSize);
})",
                              {static_cast<unsigned>(wave_ - 2), 1, 1}),
           {1, 1, 1}, out)
      .value();
  const auto result = host_.download<float>(out);
  for (int i = 0; i < wave_ - 2; ++i) {
    const float value = result[static_cast<std::size_t>(i)];
    const int from = i + 1;
    if (i % 3 == 1) {
      EXPECT_EQ(value, 0) << "thread " << i << " had ended";
    } else if (from % 3 == 1 || from >= wave_ - 2) {
      EXPECT_TRUE(std::isnan(value)) << i;
    } else {
      EXPECT_EQ(value, static_cast<float>(from));
    }
  }
}

// The usual reduction: by halves within a wave, then over the waves in shared memory.
TEST_P(HipHostWave, ReducesABlock) {
  const std::string text = R"(
extern "C" __global__ void test(const int* in, int* out) {
  __shared__ int sums[32];
  int sum = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int by = warpSize / 2; by > 0; by /= 2) sum += __shfl_down(sum, by);
  if (threadIdx.x % warpSize == 0) sums[threadIdx.x / warpSize] = sum;
  __syncthreads();
  if (threadIdx.x == 0) {
    int all = 0;
    for (int i = 0; i < int(blockDim.x) / warpSize; ++i) all += sums[i];
    out[blockIdx.x] = all;
  }
})";
  const unsigned blocks = 37;
  for (const unsigned threads : {64U, 256U, 1024U}) {
    std::vector<int> numbers(blocks * threads);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int>(i * i % 1009);
    const auto in = host_.upload(numbers);
    const auto out = host_.upload(std::vector<int>(blocks));
    host_.run(HostDevice::source(text, {threads, 1, 1}), {blocks, 1, 1}, in, out).value();
    const auto result = host_.download<int>(out);
    for (unsigned block = 0; block < blocks; ++block) {
      int expected = 0;
      for (unsigned i = 0; i < threads; ++i) expected += numbers[block * threads + i];
      ASSERT_EQ(result[block], expected) << threads << " threads, block " << block;
    }
  }
}

// Each lane writes for its neighbour, which would read too early without __syncwarp.
TEST_P(HipHostWave, LanesSeeWhatOthersWroteBeforeSyncwarp) {
  const auto threads = static_cast<unsigned>(2 * wave_);
  const auto out = host_.upload(std::vector<int>(threads));
  host_
      .run(HostDevice::source(R"(
extern "C" __global__ void test(int* out) {
  __shared__ int values[128];
  const int i = threadIdx.x, first = i / warpSize * warpSize;
  int value = i;
  for (int round = 0; round < 10; ++round) {
    values[first + (i + 1) % warpSize] = value;
    __syncwarp();
    value = values[i];
    __syncwarp();
  }
  out[i] = value;
})",
                              {threads, 1, 1}),
           {1, 1, 1}, out)
      .value();
  const auto result = host_.download<int>(out);
  for (int i = 0; i < 2 * wave_; ++i) {
    const int first = i / wave_ * wave_;
    EXPECT_EQ(result[static_cast<std::size_t>(i)], first + (i - first + wave_ - 10) % wave_);
  }
}

}  // namespace
}  // namespace greta::test::wave_test
