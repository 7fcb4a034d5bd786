// Protects: a flush reads its whole memory, also with fewer workgroups than chunks, and warm timers
// don't flush.

#include "tuner/measure/cache_flush.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>

#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"
#include "tuner/measure/ceiling_kernels.hpp"
#include "tuner/measure/launch_timer.hpp"

namespace greta::test::cache_flush_test {
namespace {

class ReadKernel : public ::testing::TestWithParam<const char*> {};

// The value that makes the kernel write is at the end of the memory, so a skipped chunk is
// detected.
TEST_P(ReadKernel, ReadsEveryPiece) {
  const auto device = open_device(GetParam(), {}).value();
  constexpr std::uint32_t pieces = 7, groups = 3;
  constexpr std::size_t bytes = pieces * copy_group_bytes;
  const std::array<std::uint32_t, 4> mark{0x2545F491U, 0x4F6CDD1DU, 1, 2};
  std::vector<std::byte> content(bytes);
  // The last vector that the first thread of workgroup 0 reads in its last chunk.
  const std::size_t last = (pieces - 1) * copy_group_bytes + 3 * ceiling_threads * sizeof mark;
  std::memcpy(content.data() + last, mark.data(), sizeof mark);
  const auto memory = device->allocate(bytes).value();
  ASSERT_TRUE(device->upload(*memory, 0, content));

  const auto kernel = device->compile(read_kernel(device->info())).value();
  const auto stream = device->create_stream().value();
  std::array<std::byte, 16> arguments{};
  const std::uint64_t address = memory->address();
  std::memcpy(arguments.data(), &address, sizeof address);
  std::memcpy(arguments.data() + 8, &pieces, sizeof pieces);
  std::memcpy(arguments.data() + 12, &groups, sizeof groups);
  ASSERT_TRUE(stream->launch(*kernel, {groups, 1, 1}, arguments));
  ASSERT_TRUE(stream->synchronize(std::chrono::seconds(60)));

  std::array<std::uint32_t, 4> found{};
  std::vector<std::byte> after(bytes);
  ASSERT_TRUE(device->download(*memory, 0, after));
  std::memcpy(found.data(), after.data(), sizeof found);
  EXPECT_EQ(found, mark);
}

INSTANTIATE_TEST_SUITE_P(Devices, ReadKernel, ::testing::Values("auto", "hip-host:1"),
                         [](const auto& tested) {
                           return std::string(tested.param).substr(0, 4) == "auto" ? "auto"
                                                                                   : "hip_host";
                         });

TEST(CacheFlush, TakesAtLeastWhatIsAskedForAndNoneIsWarm) {
  const auto device = open_device("auto", {}).value();
  const auto cold = LaunchTimer::create(*device, 100'000).value();
  EXPECT_GE(cold.flush_bytes(), 100'000U);
  EXPECT_EQ(LaunchTimer::create(*device, 0).value().flush_bytes(), 0U);
}

TEST(CacheFlush, TakesMoreThanTheCacheHolds) {
  DeviceInfo info;
  info.last_level_cache_bytes = 1000;
  EXPECT_GT(default_flush_bytes(info), 1000U);
  info.kind = DeviceKind::discrete_gpu;
  EXPECT_GT(default_flush_bytes(info), 2000U);
}

}  // namespace
}  // namespace greta::test::cache_flush_test
