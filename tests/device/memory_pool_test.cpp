// Protects: the memory pool never returns overlapping blocks, merges and reuses free ones, and
// returns unused chunks.

#include "runtime/device/memory_pool.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tests/layers.hpp"

namespace greta::test::memory_pool_test {

namespace {

constexpr std::uint64_t mebibyte = 1 << 20;

struct FakeDriver {
  std::uint64_t held = 0;
  std::uint64_t most = UINT64_MAX;
  std::uint64_t chunks = 0;
};

struct FakeChunk final : MemoryChunk {
  FakeChunk(FakeDriver& its_driver, std::uint64_t its_bytes)
      : driver(its_driver), bytes(its_bytes) {
    driver.held += bytes;
    ++driver.chunks;
  }
  ~FakeChunk() override { driver.held -= bytes; }
  FakeChunk(const FakeChunk&) = delete;
  FakeChunk& operator=(const FakeChunk&) = delete;
  FakeDriver& driver;
  std::uint64_t bytes;
};

struct FakeSource final : MemorySource {
  explicit FakeSource(FakeDriver& its_driver) : driver(its_driver) {}
  Result<std::unique_ptr<MemoryChunk>> allocate(std::uint64_t bytes) override {
    if (driver.held + bytes > driver.most) return Failure{Status::out_of_memory, "full", {}};
    return std::unique_ptr<MemoryChunk>(std::make_unique<FakeChunk>(driver, bytes));
  }
  FakeDriver& driver;
};

class MemoryPoolTest : public ::testing::Test {
 protected:
  MemoryPool make(MemoryPool::Options options = {}) {
    return {std::make_unique<FakeSource>(driver_), options};
  }
  FakeDriver driver_;
};

TEST_F(MemoryPoolTest, ExactBlocksAreChunksOfTheirOwnSize) {
  MemoryPool pool = make({.exact = true});
  const auto a = pool.allocate(100).value();
  const auto b = pool.allocate(100).value();
  EXPECT_EQ(driver_.chunks, 2U);
  EXPECT_EQ(driver_.held, 200U);
  EXPECT_EQ(a.size, 100U);
  pool.release(b);
  EXPECT_EQ(driver_.held, 100U) << "given back at once, so that later uses are seen";
  pool.release(a);
  EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
  EXPECT_EQ(pool.statistics().reserved_bytes, 0U);
}

TEST_F(MemoryPoolTest, SmallBlocksShareAChunk) {
  MemoryPool pool = make();
  const auto a = pool.allocate(1).value();
  const auto b = pool.allocate(257).value();
  EXPECT_EQ(driver_.chunks, 1U);
  EXPECT_EQ(a.chunk, b.chunk);
  EXPECT_EQ(a.size, 256U);
  EXPECT_EQ(b.size, 512U);
  EXPECT_EQ(b.offset % 256, 0U);
  EXPECT_EQ(pool.statistics().in_use_bytes, 768U);
  EXPECT_EQ(pool.statistics().reserved_bytes, 64 * mebibyte);
  EXPECT_EQ(pool.statistics().reuses, 1U);
}

TEST_F(MemoryPoolTest, LargeBlocksGetAChunkOfTheirOwn) {
  MemoryPool pool = make();
  pool.allocate(100 * mebibyte).value();
  EXPECT_EQ(pool.statistics().reserved_bytes, 100 * mebibyte);
  pool.allocate(1).value();
  EXPECT_EQ(pool.statistics().reserved_bytes, 164 * mebibyte);
}

TEST_F(MemoryPoolTest, FreeNeighboursMerge) {
  MemoryPool pool = make();
  std::vector<MemoryPool::Block> blocks;
  for (int i = 0; i < 64; ++i) blocks.push_back(pool.allocate(mebibyte).value());
  EXPECT_EQ(driver_.chunks, 1U);
  // Even blocks first, then odd ones, so that each odd one has free neighbours on both sides.
  for (std::size_t i = 0; i < blocks.size(); i += 2) pool.release(blocks[i]);
  for (std::size_t i = 1; i < blocks.size(); i += 2) pool.release(blocks[i]);
  EXPECT_EQ(pool.allocate(64 * mebibyte).value().offset, 0U);
  EXPECT_EQ(driver_.chunks, 1U);
}

TEST_F(MemoryPoolTest, TheBestFitIsTaken) {
  MemoryPool pool = make();
  const auto large = pool.allocate(4 * mebibyte).value();
  const auto wall = pool.allocate(256).value();
  const auto small = pool.allocate(mebibyte).value();
  const auto end = pool.allocate(256).value();
  pool.release(large);
  pool.release(small);
  EXPECT_EQ(pool.allocate(mebibyte).value().offset, small.offset);
  EXPECT_LT(wall.offset, end.offset);
}

TEST_F(MemoryPoolTest, TrimGivesBackWhatNobodyUses) {
  MemoryPool pool = make();
  const auto kept = pool.allocate(256).value();
  const auto gone = pool.allocate(200 * mebibyte).value();
  pool.release(gone);
  EXPECT_EQ(driver_.held, 264 * mebibyte);
  pool.trim();
  EXPECT_EQ(driver_.held, 64 * mebibyte);
  EXPECT_EQ(pool.statistics().reserved_bytes, 64 * mebibyte);
  pool.release(kept);
  pool.trim();
  EXPECT_EQ(driver_.held, 0U);
}

TEST_F(MemoryPoolTest, LimitsAreFailuresWithBothSizes) {
  MemoryPool::Options options;
  options.limit_bytes = 100 * mebibyte;
  MemoryPool pool = make(options);
  EXPECT_EQ(pool.allocate(0).failure().status, Status::invalid_argument);
  const auto failure = pool.allocate(101 * mebibyte).failure();
  EXPECT_EQ(failure.status, Status::out_of_memory);
  EXPECT_NE(failure.message.find("105906176"), std::string::npos) << failure.message;
  EXPECT_NE(failure.message.find("104857600"), std::string::npos) << failure.message;
  EXPECT_EQ(pool.allocate(UINT64_MAX).failure().status, Status::out_of_memory);

  const auto most = pool.allocate(90 * mebibyte).value();
  EXPECT_TRUE(pool.allocate(mebibyte)) << "a shared chunk would not fit any more";
  EXPECT_EQ(pool.allocate(20 * mebibyte).failure().status, Status::out_of_memory);
  pool.release(most);
  EXPECT_TRUE(pool.allocate(95 * mebibyte)) << "the unused chunk makes room";
}

TEST_F(MemoryPoolTest, AFullDriverIsAskedAgainAfterATrim) {
  driver_.most = 100 * mebibyte;
  MemoryPool pool = make();
  pool.release(pool.allocate(80 * mebibyte).value());
  EXPECT_TRUE(pool.allocate(90 * mebibyte));
  EXPECT_TRUE(pool.allocate(mebibyte)) << "less than a shared chunk";
  EXPECT_EQ(pool.allocate(50 * mebibyte).failure().message, "full");
}

TEST_F(MemoryPoolTest, RandomUseNeverOverlapsAndEndsEmpty) {
  MemoryPool::Options options;
  options.chunk_bytes = mebibyte;
  MemoryPool pool = make(options);
  std::mt19937 random(1);
  std::vector<MemoryPool::Block> blocks;
  std::uint64_t in_use = 0;
  for (int step = 0; step < 4000; ++step) {
    if (blocks.empty() || random() % 5 < 3) {
      const auto block = pool.allocate(1 + random() % 300'000).value();
      for (const auto& other : blocks) {
        ASSERT_TRUE(other.chunk != block.chunk || other.offset + other.size <= block.offset ||
                    block.offset + block.size <= other.offset);
      }
      in_use += block.size;
      blocks.push_back(block);
    } else {
      std::swap(blocks[random() % blocks.size()], blocks.back());
      in_use -= blocks.back().size;
      pool.release(blocks.back());
      blocks.pop_back();
    }
    ASSERT_EQ(pool.statistics().in_use_bytes, in_use);
  }
  for (const auto& block : blocks) pool.release(block);
  pool.trim();
  EXPECT_EQ(driver_.held, 0U);
  EXPECT_EQ(pool.statistics().in_use_bytes, 0U);
}

}  // namespace

}  // namespace greta::test::memory_pool_test
