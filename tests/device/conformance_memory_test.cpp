// Protects: buffers, copies and fills on every device, including the rejection of invalid ranges.

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "tests/device/conformance.hpp"
#include "tests/layers.hpp"

namespace greta::test::conformance_memory_test {

namespace {

using ConformanceMemory = Conformance;
INSTANTIATE_TEST_SUITE_P(All, ConformanceMemory, ::testing::ValuesIn(usable_devices()),
                         parameter_name);

std::vector<std::byte> pattern(std::size_t bytes, unsigned seed) {
  std::vector<std::byte> values(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    values[i] = static_cast<std::byte>((i * 131 + seed) % 251);
  }
  return values;
}

TEST_P(ConformanceMemory, Allocates) {
  for (const Memory memory : {Memory::device, Memory::staging}) {
    const auto buffer = device_->allocate(1000, memory).value();
    EXPECT_EQ(buffer->size(), 1000U);
    EXPECT_NE(buffer->address(), 0U);
    EXPECT_EQ(buffer->address() % 256, 0U);
    EXPECT_EQ(buffer->host() != nullptr,
              memory == Memory::staging || device_->info().unified_memory);
  }
  const auto nothing = device_->allocate(0);
  ASSERT_FALSE(nothing);
  EXPECT_EQ(nothing.failure().status, Status::invalid_argument);
}

TEST_P(ConformanceMemory, CopiesBothWaysAtOddSizesAndOffsets) {
  const auto buffer = device_->allocate(10000).value();
  for (const std::size_t offset : {0U, 1U, 7U, 255U, 256U, 3333U}) {
    for (const std::size_t bytes : {0U, 1U, 3U, 255U, 257U, 4099U}) {
      const auto before = pattern(10000, 1);
      device_->upload(*buffer, 0, before).value();
      const auto sent = pattern(bytes, 99);
      device_->upload(*buffer, offset, sent).value();
      auto expected = before;
      std::copy(sent.begin(), sent.end(), expected.begin() + static_cast<std::ptrdiff_t>(offset));
      std::vector<std::byte> all(10000);
      device_->download(*buffer, 0, all).value();
      EXPECT_EQ(all, expected) << bytes << " bytes at " << offset;
      std::vector<std::byte> part(bytes);
      device_->download(*buffer, offset, part).value();
      EXPECT_EQ(part, sent) << bytes << " bytes at " << offset;
    }
  }
}

TEST_P(ConformanceMemory, DownloadsPartsOfSeveralBuffersTogether) {
  const auto small = device_->allocate(1000).value();
  const auto large = device_->allocate(std::size_t{40} << 20).value();
  const auto staging = device_->allocate(500, Memory::staging).value();
  const auto of_small = pattern(small->size(), 1), of_large = pattern(large->size(), 2);
  const auto of_staging = pattern(staging->size(), 3);
  device_->upload(*small, 0, of_small).value();
  device_->upload(*large, 0, of_large).value();
  device_->upload(*staging, 0, of_staging).value();
  struct Part {
    const Buffer* from;
    std::span<const std::byte> contents;
    std::size_t offset, bytes;
  };
  const Part wanted[] = {
      {small.get(), of_small, 0, 1000}, {large.get(), of_large, 5, (std::size_t{33} << 20) + 3},
      {small.get(), of_small, 7, 0},    {staging.get(), of_staging, 1, 499},
      {small.get(), of_small, 3, 255},  {large.get(), of_large, 0, std::size_t{16} << 20}};
  std::vector<std::vector<std::byte>> back;
  std::vector<Download> parts;
  for (const Part& part : wanted) {
    back.emplace_back(part.bytes);
    parts.push_back({part.from, part.offset, back.back()});
  }
  device_->download_all(parts).value();
  for (std::size_t i = 0; i < back.size(); ++i) {
    const auto expected = wanted[i].contents.subspan(wanted[i].offset, wanted[i].bytes);
    EXPECT_TRUE(std::equal(back[i].begin(), back[i].end(), expected.begin())) << i;
  }
  parts.push_back({small.get(), 999, parts.front().to});
  EXPECT_EQ(device_->download_all(parts).failure().status, Status::invalid_argument);
}

TEST_P(ConformanceMemory, CopiesMoreThanFitsIntoStaging) {
  const auto sent = pattern((std::size_t{40} << 20) + 5, 3);
  const auto buffer = device_->allocate(sent.size() + 3).value();
  device_->upload(*buffer, 3, sent).value();
  std::vector<std::byte> back(sent.size());
  device_->download(*buffer, 3, back).value();
  EXPECT_TRUE(back == sent);
}

TEST_P(ConformanceMemory, RefusesWhatIsOutside) {
  const auto buffer = device_->allocate(100).value();
  std::vector<std::byte> data(101);
  const std::span<std::byte> all(data);
  EXPECT_EQ(device_->upload(*buffer, 0, all).failure().status, Status::invalid_argument);
  EXPECT_EQ(device_->upload(*buffer, 100, all.first(1)).failure().status, Status::invalid_argument);
  EXPECT_EQ(device_->download(*buffer, SIZE_MAX, all.first(2)).failure().status,
            Status::invalid_argument);
  EXPECT_TRUE(device_->download(*buffer, 100, all.first(0)));
  const auto stream = device_->create_stream().value();
  EXPECT_EQ(stream->copy(*buffer, 60, *buffer, 0, 60).failure().status, Status::invalid_argument);
  EXPECT_EQ(stream->copy(*buffer, 10, *buffer, 0, 20).failure().status, Status::invalid_argument);
  EXPECT_EQ(stream->fill(*buffer, 0, 104, 0).failure().status, Status::invalid_argument);
  EXPECT_EQ(stream->fill(*buffer, 2, 4, 0).failure().status, Status::invalid_argument);
  EXPECT_EQ(stream->fill(*buffer, 0, 6, 0).failure().status, Status::invalid_argument);
}

TEST_P(ConformanceMemory, RefusesAnotherDevicesBuffer) {
  const auto other = open();
  const auto buffer = other->allocate(16).value();
  const std::vector<std::byte> data(16);
  EXPECT_EQ(device_->upload(*buffer, 0, data).failure().status, Status::invalid_argument);
}

TEST_P(ConformanceMemory, TooLargeIsAFailureThatNamesBothSizes) {
  const std::uint64_t all = device_->info().memory_bytes;
  for (const std::uint64_t bytes : {all * 2, std::uint64_t{SIZE_MAX}}) {
    const auto buffer = device_->allocate(bytes);
    ASSERT_FALSE(buffer);
    EXPECT_EQ(buffer.failure().status, Status::out_of_memory);
    EXPECT_NE(buffer.failure().message.find(fmt::format("{}", bytes)), std::string::npos)
        << buffer.failure().message;
    EXPECT_NE(buffer.failure().message.find(fmt::format("{}", all)), std::string::npos)
        << buffer.failure().message;
  }
  EXPECT_TRUE(device_->allocate(1000)) << "the device goes on";
}

TEST_P(ConformanceMemory, ReusesWhatWasFreed) {
  auto buffer = device_->allocate(1000).value();
  const std::uint64_t address = buffer->address();
  EXPECT_GE(device_->memory().in_use_bytes, 1000U);
  buffer.reset();
  EXPECT_EQ(device_->memory().in_use_bytes, 0U);
  // With bounds checks, uses of freed memory are detected, so blocks are not reused.
  const bool pooled = !device_->info().watches_bounds;
  buffer = device_->allocate(900).value();
  EXPECT_EQ(device_->memory().allocations, 2U);
  EXPECT_EQ(device_->memory().reuses, pooled ? 1U : 0U);
  EXPECT_TRUE(!pooled || buffer->address() == address);
  buffer.reset();
  EXPECT_EQ(device_->memory().reserved_bytes > 0, pooled);
  device_->trim();
  EXPECT_EQ(device_->memory().reserved_bytes, 0U);
  EXPECT_GE(device_->memory().peak_bytes, 1000U);
}

TEST_P(ConformanceMemory, StreamsCopyAndFill) {
  const auto sent = pattern(1000, 5);
  const auto from = device_->allocate(1000).value();
  const auto to = device_->allocate(1000).value();
  device_->upload(*from, 0, sent).value();
  const auto stream = device_->create_stream().value();
  stream->fill(*to, 0, 1000, 0x01020304).value();
  stream->copy(*to, 101, *from, 33, 501).value();
  stream->synchronize(patience).value();
  std::vector<std::byte> back(1000);
  device_->download(*to, 0, back).value();
  for (std::size_t i = 0; i < back.size(); ++i) {
    const bool copied = i >= 101 && i < 602;
    const auto expected = copied ? sent[i - 101 + 33] : static_cast<std::byte>(4 - i % 4);
    ASSERT_EQ(back[i], expected) << "byte " << i;
  }
}

}  // namespace

}  // namespace greta::test::conformance_memory_test
