// Protects: of operations that are never predicted, a winner that gains little over the default
// serves no problem of another shape, which has its own default. Other winners do, unless a judging
// default is predicted to be much faster, or their shape permits only narrower loads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::carried_test {
namespace {

class CarriedWinners : public ::testing::Test {
 protected:
  static Problem softmax(std::int64_t rows, std::int64_t cols) {
    return {"softmax", DType::f16, DType::f16, {}, {{"rows", rows}, {"cols", cols}}};
  }
  /// Returns the answer where the only winner is this one, with a speedup of at least `low`.
  Answer answer(const Problem& asked, StoredWinner known, double low) const {
    test::Databases databases;
    known.winner.default_us = 20;
    known.winner.speedup = low + 0.01;
    known.winner.speedup_low = low;
    known.winner.speedup_high = low + 0.02;
    databases.add(known);
    return databases.open(here_).find(asked);
  }

  const DeviceInfo here_ = test::card("gfx942", "aa");
  const Config narrow_{"held", {{"THREADS", 128}, {"ROWS", 1}, {"VEC", 2}, {"STAY", 0}}};
};

TEST_F(CarriedWinners, OneThatGainsLittleServesItsBucketAlone) {
  const StoredWinner known = test::winner(softmax(4096, 4096), here_, narrow_);
  for (const std::int64_t rows : {4096, 4000}) {
    const Answer own = answer(softmax(rows, 4096), known, 1.04);
    EXPECT_EQ(own.config, narrow_) << rows;
    EXPECT_TRUE(own.speedup) << rows;
  }
  const Problem other = softmax(4096, 4000);
  const Answer little = answer(other, known, 1.04), much = answer(other, known, 1.06);
  EXPECT_EQ(little.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(little.config, built_in("softmax").default_config(other, here_));
  EXPECT_FALSE(little.speedup);  // of a configuration that is not the answer
  EXPECT_FALSE(little.time);
  EXPECT_EQ(much.config, narrow_);
  EXPECT_EQ(much.speedup->low, 1.06);
}

// Rows of an odd length begin at any element, so that their winner loads elements one by one.
TEST_F(CarriedWinners, OneOfOddRowsServesOddRowsAlone) {
  const Config single{"held", {{"THREADS", 128}, {"ROWS", 1}, {"VEC", 1}, {"STAY", 0}}};
  const StoredWinner odd = test::winner(softmax(4096, 1501), here_, single);
  EXPECT_EQ(answer(softmax(4096, 1503), odd, 1.5).config, single);
  const Problem even = softmax(4096, 1504);
  const Answer own = answer(even, odd, 1.5);
  EXPECT_EQ(own.origin, LookupOrigin::fallback);
  EXPECT_EQ(own.config, built_in("softmax").default_config(even, here_));
  // Where wider loads were possible, narrow ones won.
  const StoredWinner chosen = test::winner(softmax(4096, 1520), here_, single);
  EXPECT_EQ(answer(even, chosen, 1.5).config, single);
  // So they did in rows that are too short for as many threads with wider loads.
  const Config full{"held", {{"THREADS", 256}, {"ROWS", 1}, {"VEC", 4}, {"STAY", 0}}};
  const StoredWinner shorter = test::winner(softmax(4096, 1024), here_, full);
  EXPECT_EQ(answer(softmax(4096, 1536), shorter, 1.5).config, full);
  // The next nearest winner serves.
  test::Databases databases;
  databases.add(odd);
  databases.add(test::winner(softmax(4096, 1408), here_, narrow_));
  EXPECT_EQ(databases.open(here_).find(even).config, narrow_);
}

TEST_F(CarriedWinners, WithoutARatioToTheDefaultItServesOthers) {
  test::Databases databases;
  StoredWinner known = test::winner(softmax(4096, 4096), here_, narrow_);
  known.winner.default_us = 0;  // the default failed
  databases.add(known);
  EXPECT_EQ(databases.open(here_).find(softmax(4096, 4000)).config, narrow_);
}

TEST_F(CarriedWinners, OfPredictedOperationsTheyServeOthers) {
  const StoredWinner known = test::winner(test::gemm(96, 64, 64), here_, test::plain_config(1));
  const Answer other = answer(test::gemm(64, 64, 64), known, 1.01);
  EXPECT_EQ(other.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(other.config, test::plain_config(1));
}

// A slice for each of many sequences leaves a device without work for few.
TEST_F(CarriedWinners, ADefaultJudgesThoseOfItsVariant) {
  const auto latent = [](std::int64_t batch, std::int64_t kv) {
    return Problem::parse(fmt::format("latent_attention dtype=bf16 out=bf16 batch={} heads=128 q=1 "
                                      "kv={} latent=512 rope=64",
                                      batch, kv))
        .value();
  };
  const auto hopper = test::card("sm_90", "aa");
  const auto pingpong = [](int split) {
    return Config{"pingpong", {{"BK", 64}, {"SPLIT", split}, {"STREAM_K", 0}}};
  };
  const Problem few = latent(8, 4096);
  const Config own = built_in("latent_attention").default_config(few, hopper);
  ASSERT_GE(own["SPLIT"], 4);
  const auto answer_of = [&](const DeviceInfo& device, const Config& config) {
    test::Databases databases;
    databases.add(test::winner(latent(16, 4096), device, config));
    return databases.open(device).find(few);
  };
  const Answer judged = answer_of(hopper, pingpong(1));
  EXPECT_EQ(judged.origin, LookupOrigin::fallback);
  EXPECT_EQ(judged.config, own);
  EXPECT_FALSE(judged.speedup);
  // The variant that was the default before is judged, too.
  const Config before{"warpgroups", {{"BK", 64}, {"GROUPS", 2}, {"BUFFERS", 2}, {"SPLIT", 1}}};
  EXPECT_EQ(answer_of(hopper, before).config, own);
  // One that is about as good answers, and so does another variant, which the prior compares worse.
  const Config near = pingpong(own["SPLIT"] + (own["SPLIT"] > 4 ? -2 : 2));
  EXPECT_EQ(answer_of(hopper, near).config, near);
  const Config matrix{"matrix",
                      {{"BK", 32},
                       {"WQ", 16},
                       {"WAVES", 1},
                       {"VWAVES", 8},
                       {"BUFFERS", 2},
                       {"QREG", 0},
                       {"SPLIT", 1},
                       {"FOLD", 1}}};
  EXPECT_EQ(answer_of(hopper, matrix).config, matrix);
}

}  // namespace
}  // namespace greta::test::carried_test
