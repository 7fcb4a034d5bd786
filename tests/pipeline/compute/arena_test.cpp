// Protects: the placement of temporaries. Those that live at the same time never overlap; others
// share memory.
#include "runtime/pipeline/compute/arena.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "tests/layers.hpp"

namespace greta::test::arena_test {
namespace {

bool live_together(const Lifetime& a, const Lifetime& b) {
  return a.first <= b.last && b.first <= a.last;
}

/// Returns the most bytes that live at one step, a lower bound of the arena's size.
std::size_t least_bytes(const std::vector<Lifetime>& lives, std::size_t alignment) {
  std::size_t most = 0, last = 0;
  for (const Lifetime& life : lives) last = std::max(last, life.last);
  for (std::size_t step = 0; step <= last; ++step) {
    std::size_t now = 0;
    for (const Lifetime& life : lives) {
      if (life.first <= step && step <= life.last) {
        now += (life.bytes + alignment - 1) / alignment * alignment;
      }
    }
    most = std::max(most, now);
  }
  return most;
}

TEST(Arena, LiveOnesNeverOverlap) {
  std::mt19937_64 random(7);
  double worst = 1;
  for (int round = 0; round < 400; ++round) {
    const std::size_t alignment = round % 3 == 0 ? 1 : 256;
    std::vector<Lifetime> lives(1 + random() % 60);
    for (Lifetime& life : lives) {
      life.first = random() % 40;
      life.last = life.first + random() % (round % 2 == 0 ? 4 : 30);
      life.bytes = 1 + random() % (random() % 2 == 0 ? 300 : 5000);
    }
    const ArenaPlan plan = plan_arena(lives, alignment);
    ASSERT_EQ(plan.offsets.size(), lives.size());
    for (std::size_t i = 0; i < lives.size(); ++i) {
      EXPECT_EQ(plan.offsets[i] % alignment, 0U);
      EXPECT_LE(plan.offsets[i] + lives[i].bytes, plan.bytes);
      for (std::size_t j = 0; j < i; ++j) {
        const bool apart = plan.offsets[i] + lives[i].bytes <= plan.offsets[j] ||
                           plan.offsets[j] + lives[j].bytes <= plan.offsets[i];
        ASSERT_TRUE(apart || !live_together(lives[i], lives[j])) << "round " << round;
      }
    }
    const std::size_t least = least_bytes(lives, alignment);
    EXPECT_GE(plan.bytes, least);
    worst = std::max(worst, static_cast<double>(plan.bytes) / static_cast<double>(least));
  }
  EXPECT_LT(worst, 1.5);  // far less than separate memory for each
}

TEST(Arena, AChainTakesItsTwoLargestNeighbours) {
  std::vector<Lifetime> chain;
  for (std::size_t i = 0; i < 320; ++i) chain.push_back({(1 + i % 5) * 1000, i, i + 1});
  EXPECT_EQ(plan_arena(chain, 1000).bytes, 9000U);
}

TEST(Arena, TheSmallestGapIsTaken) {
  // They are placed at 0, 300, 500 and 600. From step 2 on, 300 bytes at 0 and 100 at 500 are free.
  const std::vector<Lifetime> lives{{300, 0, 1}, {200, 0, 9}, {100, 0, 1}, {80, 0, 9}, {50, 3, 9}};
  EXPECT_EQ(plan_arena(lives, 1).offsets, (std::vector<std::size_t>{0, 300, 500, 600, 500}));
  EXPECT_EQ(plan_arena({}).bytes, 0U);
}

}  // namespace
}  // namespace greta::test::arena_test
