// Protects: the order in which winners are considered, and the origin that an answer reports.
#include <gtest/gtest.h>

#include "kernels/prior/predicted_config.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::order_test {
namespace {

using test::card;
using test::gemm;
using test::plain_config;
using test::winner;

class LookupOrder : public ::testing::Test {
 protected:
  const DeviceInfo here_ = card("gfx942", "aa"), beside_ = card("gfx942", "bb");
  test::Databases databases_;
};

TEST_F(LookupOrder, WithoutADatabaseTheBetterOfPriorAndDefaultAnswers) {
  const auto lookup = databases_.open(here_);
  const Problem asked = gemm(64, 64, 64);
  EXPECT_EQ(lookup.find(asked).origin, LookupOrigin::predicted);
  EXPECT_EQ(lookup.find(asked).config, predicted_config(built_in("gemm"), asked, here_).value());
  EXPECT_EQ(lookup.find(asked).origin_text(), "static prior");
  DeviceInfo cpu = here_;
  cpu.kind = DeviceKind::cpu;
  EXPECT_EQ(databases_.open(cpu).find(asked).origin, LookupOrigin::fallback);
  const Problem norm{"rmsnorm", DType::f16, DType::f16, {}, {{"rows", 64}, {"cols", 512}}};
  const Answer& answer = lookup.find(norm);
  EXPECT_EQ(answer.origin, LookupOrigin::fallback);
  EXPECT_EQ(answer.config, built_in("rmsnorm").default_config(norm, here_));
  EXPECT_FALSE(answer.expected_regret);
  EXPECT_FALSE(answer.speedup);
  EXPECT_EQ(answer.problem + answer.device, "");
}

TEST_F(LookupOrder, TheProblemItselfComesFirst) {
  const Problem asked = gemm(64, 64, 64);
  databases_.add(winner(asked, here_, plain_config(1)));
  databases_.add(winner(gemm(64, 64, 65), here_, plain_config(2)));
  databases_.add(winner(asked, beside_, plain_config(3)));
  const auto lookup = databases_.open(here_);
  const Answer& answer = lookup.find(asked);
  EXPECT_EQ(answer.origin, LookupOrigin::exact);
  EXPECT_EQ(answer.config, plain_config(1));
  EXPECT_EQ(answer.expected_regret, 1);
  ASSERT_TRUE(answer.speedup);
  EXPECT_EQ(answer.speedup->ratio, 1.5);
  EXPECT_EQ(answer.speedup->low, 1.4);
  EXPECT_EQ(answer.speedup->high, 1.6);
  EXPECT_EQ(answer.problem, asked.key());
  EXPECT_EQ(answer.device, here_.name);
  EXPECT_EQ(answer.level, DatabaseLevel::own);
}

TEST_F(LookupOrder, ThenTheNearestShapeOnThisDevice) {
  const Problem asked = gemm(64, 64, 64), far = gemm(128, 64, 64), near = gemm(96, 64, 64);
  databases_.add(winner(far, here_, plain_config(1)));
  databases_.add(winner(near, here_, plain_config(2)));
  databases_.add(winner(asked, beside_, plain_config(3)));
  const auto lookup = databases_.open(here_);
  const Answer& answer = lookup.find(asked);
  EXPECT_EQ(answer.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(answer.problem, near.key());
  EXPECT_EQ(answer.config, plain_config(2));
}

TEST_F(LookupOrder, ThenOtherDevicesOfTheArchitecture) {
  const Problem asked = gemm(64, 64, 64);
  auto other = card("gfx90a", "cc");
  databases_.add(winner(asked, other, plain_config(1)));
  EXPECT_EQ(databases_.open(here_).find(asked).origin, LookupOrigin::predicted);
  auto vulkan = beside_;  // its kernels are no HIP kernels
  vulkan.backend = Api::vulkan;
  vulkan.language = Language::glsl;
  databases_.add(winner(asked, vulkan, plain_config(1)));
  EXPECT_EQ(databases_.open(here_).find(asked).origin, LookupOrigin::predicted);
  databases_.add(winner(gemm(64, 64, 32), beside_, plain_config(2)));
  EXPECT_EQ(databases_.open(here_).find(asked).problem, gemm(64, 64, 32).key());
  databases_.add(winner(asked, beside_, plain_config(3)));
  const auto lookup = databases_.open(here_);
  const Answer& answer = lookup.find(asked);
  EXPECT_EQ(answer.origin, LookupOrigin::same_architecture);
  EXPECT_EQ(answer.problem, asked.key());
  EXPECT_EQ(answer.device, beside_.name);
  EXPECT_FALSE(answer.expected_regret);
}

TEST_F(LookupOrder, WhatIsOfOtherTypesOrAttributesDoesNotCount) {
  auto half = gemm(64, 64, 64);
  half.dtype = half.out_dtype = DType::f16;
  auto turned = gemm(64, 64, 64);
  turned.attributes = {{"layout", "nt"}};
  databases_.add(winner(half, here_, plain_config(1)));
  databases_.add(winner(turned, here_, plain_config(1)));
  EXPECT_EQ(databases_.open(here_).find(gemm(64, 64, 64)).origin, LookupOrigin::predicted);
  auto wider = half;
  wider.out_dtype = DType::f32;
  EXPECT_EQ(databases_.open(here_).find(wider).origin, LookupOrigin::predicted);
  EXPECT_EQ(databases_.open(here_).find(turned).origin, LookupOrigin::exact);
}

TEST_F(LookupOrder, ConstraintsAreCheckedAgain) {
  const Problem asked = gemm(16, 64, 64);
  const Config gemv{
      "gemv",
      {{"THREADS", 64}, {"COLS", 1}, {"VB", 1}, {"VA", 1}, {"TN", 1}, {"UNROLL", 1}, {"SPLIT", 1}}};
  databases_.add(winner(gemm(8, 64, 64), here_, gemv));  // nearest, but only valid for few rows
  databases_.add(winner(gemm(16, 128, 128), here_, plain_config(2)));
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(asked).problem, gemm(16, 128, 128).key());
  EXPECT_EQ(lookup.find(gemm(8, 64, 64)).origin, LookupOrigin::exact);
  EXPECT_EQ(lookup.find(gemm(4, 64, 64)).problem, gemm(8, 64, 64).key());
}

TEST_F(LookupOrder, AnExactResultThatIsNotValidAnyMoreIsNotUsed) {
  const Problem asked = gemm(64, 64, 64);
  databases_.add(winner(asked, here_, {"naive", {{"THREADS", 3}}}));
  EXPECT_EQ(databases_.open(here_).find(asked).origin, LookupOrigin::predicted);
  databases_.add(winner(asked, here_, {"variant_of_yesterday", {{"X", 3}}}));
  EXPECT_EQ(databases_.open(here_).find(asked).origin, LookupOrigin::predicted);
}

TEST_F(LookupOrder, ShapesThatAreFarDoNotCount) {
  databases_.add(winner(gemm(256, 64, 64), here_, plain_config(1)));
  databases_.add(winner(gemm(64, 256, 64), beside_, plain_config(1)));
  EXPECT_EQ(databases_.open(here_).find(gemm(64, 64, 64)).origin, LookupOrigin::predicted);
  EXPECT_EQ(databases_.open(here_).find(gemm(128, 64, 64)).origin, LookupOrigin::nearest_shape);
}

// Nobody would choose `naive` but for the shape for which it was certified, or its bucket.
TEST_F(LookupOrder, OnNvidiaAPredictionBeatsAWorseWinnerOfAnotherShape) {
  const auto hopper = card("sm_90", "aa");
  databases_.add(winner(gemm(96, 64, 64), hopper, plain_config(1)));
  EXPECT_EQ(databases_.open(hopper).find(gemm(64, 64, 64)).origin, LookupOrigin::predicted);
  for (const std::int64_t m : {89, 90, 95}) {  // the winner's shape represents them
    EXPECT_EQ(databases_.open(hopper).find(gemm(m, 64, 64)).config, plain_config(1)) << m;
  }
  const Config good = databases_.open(hopper).find(gemm(64, 64, 64)).config;
  databases_.add(winner(gemm(48, 64, 64), hopper, good));
  EXPECT_EQ(databases_.open(hopper).find(gemm(64, 64, 64)).problem, gemm(48, 64, 64).key());
}

TEST_F(LookupOrder, AnotherCardsWinnerOfThisShapeAnswersHoweverGood) {
  const auto hopper = card("sm_90", "aa"), other = card("sm_90", "bb");
  const Problem asked = gemm(1000, 64, 64);  // its bucket's representative has m = 1024
  databases_.add(winner(asked, other, plain_config(1)));
  const auto lookup = databases_.open(hopper);
  EXPECT_EQ(lookup.find(asked).origin, LookupOrigin::same_architecture);
  EXPECT_EQ(lookup.answer(asked).config, plain_config(1));
  EXPECT_EQ(lookup.answer(gemm(1001, 64, 64)).origin, LookupOrigin::predicted);
}

TEST_F(LookupOrder, WhereTheDefaultWonItIsThisProblemsDefault) {
  const Problem asked = gemm(4096, 4096, 4096), near = gemm(2048, 4096, 4096);
  auto result = winner(near, here_, plain_config(1));
  result.winner.is_default = true;
  databases_.add(result);
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(asked).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(lookup.find(asked).config, built_in("gemm").default_config(asked, here_));
  EXPECT_EQ(lookup.find(near).config, plain_config(1));  // the problem itself: as certified
}

TEST_F(LookupOrder, LengthsOfABucketShareTheirAnswerUnlessOneIsRecorded) {
  databases_.add(winner(gemm(64, 64, 64), here_, plain_config(1)));
  databases_.add(winner(gemm(128, 64, 64), here_, plain_config(2)));
  databases_.add(winner(gemm(70, 64, 64), here_, plain_config(3)));
  const auto lookup = databases_.open(here_);
  for (const std::int64_t m : {121, 122, 125, 127}) {
    EXPECT_EQ(lookup.find(gemm(m, 64, 64)).problem, gemm(128, 64, 64).key()) << m;
    EXPECT_EQ(lookup.find(gemm(m, 64, 64)).origin, LookupOrigin::nearest_shape);
    EXPECT_EQ(lookup.find(gemm(m, 512, 64)).config, lookup.find(gemm(128, 512, 64)).config);
  }
  EXPECT_EQ(lookup.find(gemm(70, 64, 64)).config, plain_config(3));
}

TEST_F(LookupOrder, OfEquallyNearShapesTheSmallerAnswersHoweverTheyAreStored) {
  const Problem asked = gemm(64, 64, 64), small = gemm(32, 64, 64), large = gemm(128, 64, 64);
  for (const bool small_first : {true, false}) {
    test::Databases databases;
    databases.add(winner(small_first ? small : large, here_, plain_config(1)));
    databases.add(winner(small_first ? large : small, here_, plain_config(1)));
    EXPECT_EQ(databases.open(here_).find(asked).problem, small.key());
  }
}

TEST_F(LookupOrder, TheUsersResultWinsAndTheShippedOneFillsGaps) {
  const Problem both = gemm(64, 64, 64), shipped_only = gemm(96, 64, 64);
  databases_.add(winner(both, here_, plain_config(1)));
  databases_.ship(
      {winner(both, here_, plain_config(2)), winner(shipped_only, here_, plain_config(3))});
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(both).config, plain_config(1));
  EXPECT_EQ(lookup.find(both).level, DatabaseLevel::own);
  const Answer& exact = lookup.find(shipped_only);  // although a user's winner is near
  EXPECT_EQ(exact.origin, LookupOrigin::exact);
  EXPECT_EQ(exact.config, plain_config(3));
  EXPECT_EQ(exact.level, DatabaseLevel::shipped);
}

TEST_F(LookupOrder, ColdAndWarmResultsAreApart) {
  const Problem asked = gemm(64, 64, 64);
  auto warm = winner(asked, here_, plain_config(1));
  warm.winner.cold = warm.winner.measurement.cold = false;
  databases_.add(warm);
  EXPECT_EQ(databases_.open(here_).find(asked).origin, LookupOrigin::predicted);
  EXPECT_EQ(databases_.open(here_, {false, false}).find(asked).origin, LookupOrigin::exact);
}

TEST_F(LookupOrder, ThePresentCircumstancesAnswerThenTheLatest) {
  const Problem asked = gemm(64, 64, 64);
  auto early = winner(asked, here_, plain_config(1)), late = winner(asked, here_, plain_config(2));
  ASSERT_NE(early.winner.config, late.winner.config);
  early.provenance.started_utc = "2026-11-01T00:00:00Z";
  late.provenance.driver = "driver 2";
  databases_.add(late);
  databases_.add(early);
  EXPECT_EQ(databases_.open(here_).find(asked).config, plain_config(1));
  auto updated = here_;
  updated.driver = "driver 2";
  EXPECT_EQ(databases_.open(updated).find(asked).config, plain_config(2));
  auto stale = winner(asked, here_, plain_config(3));
  stale.provenance.driver = "driver 3";
  stale.provenance.started_utc = "2026-11-02T00:00:00Z";
  databases_.add(stale);
  updated.driver = "driver 4";
  updated.compiler = "compiler 2";  // of neither: that of the device as last seen
  EXPECT_EQ(databases_.open(updated).find(asked).config, plain_config(1));
}

// The default may have failed, so that its time is not known.
TEST_F(LookupOrder, AWinnerWithoutARatioHasNoSpeedUp) {
  auto alone = winner(gemm(64, 64, 64), here_, plain_config(1));
  alone.winner.default_us = 0;
  alone.winner.speedup = alone.winner.speedup_low = alone.winner.speedup_high = 1;
  databases_.add(alone);
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(gemm(64, 64, 64)).origin, LookupOrigin::exact);
  EXPECT_FALSE(lookup.find(gemm(64, 64, 64)).speedup);
}

TEST_F(LookupOrder, ExpectedRegretIsWhatIsRecordedOfTheOperation) {
  const auto softmax = [](std::int64_t cols) {
    return Problem{"softmax", DType::f32, DType::f32, {}, {{"rows", 64}, {"cols", cols}}};
  };
  const Config config{"naive", {{"THREADS", 128}}};
  auto one = winner(softmax(64), here_, config), two = winner(softmax(4096), here_, config);
  const auto unknown = winner(softmax(65536), here_, config);
  one.regret = Regret{"cols=64", 1.25, Regret::Source::trials};
  two.regret = Regret{"cols=64", 1.75, Regret::Source::measured};
  two.winner.speedup = 3.5;
  for (const auto& result : {one, two, unknown}) databases_.add(result);
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.find(softmax(65)).expected_regret, 1.5);
  auto half = softmax(64);
  half.dtype = half.out_dtype = DType::f16;
  ASSERT_EQ(lookup.find(half).origin, LookupOrigin::fallback);
  EXPECT_DOUBLE_EQ(*lookup.find(half).expected_regret, (1.5 + 3.5 + 1.5) / 3);
  EXPECT_FALSE(lookup.find(gemm(64, 64, 64)).expected_regret) << "a prediction's is unknown";
}

TEST_F(LookupOrder, RowsThatAreNotPackedTakeWhatIsKnownOfPackedOnes) {
  const auto norm = [](const char* stride, std::int64_t rows = 64) {
    Problem problem{"rmsnorm", DType::f16, DType::f16, {}, {{"rows", rows}, {"cols", 512}}};
    if (*stride != 0) problem.attributes = {{"x_stride", stride}};
    return problem;
  };
  const Config wide{"held", {{"THREADS", 64}, {"ROWS", 1}, {"VEC", 8}, {"STAY", 0}}};
  const Config plain{"naive", {{"THREADS", 128}}};
  databases_.add(winner(norm(""), here_, wide));
  databases_.add(winner(norm("528"), here_, plain));
  const auto lookup = databases_.open(here_);
  const Answer& near = lookup.find(norm("520"));
  EXPECT_EQ(near.origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(near.problem, norm("").key());
  EXPECT_EQ(near.config, wide);
  EXPECT_EQ(lookup.find(norm("528")).origin, LookupOrigin::exact);
  EXPECT_EQ(lookup.find(norm("528")).config, plain);
  const Answer& odd = lookup.find(norm("513"));  // not divisible by VEC
  EXPECT_EQ(odd.origin, LookupOrigin::fallback);
  EXPECT_EQ(odd.config, built_in("rmsnorm").default_config(norm("513"), here_));
  databases_.add(winner(norm("520", 128), here_, plain));  // farther than the packed one
  databases_.add(winner(norm("", 128), here_, plain));     // valid for every stride
  const auto later = databases_.open(here_);
  EXPECT_EQ(later.find(norm("520")).problem, norm("").key());
  EXPECT_EQ(later.find(norm("520", 96)).problem, norm("520", 128).key());
  EXPECT_EQ(later.find(norm("513")).problem, norm("", 128).key());
  EXPECT_EQ(later.find(norm("513")).config, plain);
}

TEST_F(LookupOrder, OfPackedRowsADefaultStaysADefaultAndThisDeviceComesFirst) {
  const auto norm = [](const char* stride, std::int64_t rows) {
    Problem problem{"rmsnorm", DType::f16, DType::f16, {}, {{"rows", rows}, {"cols", 512}}};
    if (*stride != 0) problem.attributes = {{"x_stride", stride}};
    return problem;
  };
  const Config plain{"naive", {{"THREADS", 128}}};
  const auto default_of = [&](const Problem& problem) {
    return built_in("rmsnorm").default_config(problem, here_);
  };
  auto nothing_better = winner(norm("", 64), here_, default_of(norm("", 64)));
  nothing_better.winner.is_default = true;
  databases_.add(nothing_better);
  databases_.add(winner(norm("", 128), here_, plain));
  databases_.add(winner(norm("528", 64), beside_, plain));
  const auto lookup = databases_.open(here_);
  const Answer& odd = lookup.find(norm("513", 64));  // the loads of the packed default are too wide
  EXPECT_EQ(odd.problem, norm("", 64).key());
  EXPECT_EQ(odd.config, default_of(norm("513", 64)));
  EXPECT_EQ(lookup.find(norm("528", 64)).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(lookup.find(norm("528", 64)).config, default_of(norm("528", 64)));
}

TEST_F(LookupOrder, ProblemsThatMakeNoSenseAreRefused) {
  const auto lookup = databases_.open(here_);
  EXPECT_THROW(lookup.find(gemm(0, 64, 64)), Error);
  EXPECT_THROW(lookup.find({"no such operation", DType::f32, DType::f32, {}, {{"m", 1}}}), Error);
  auto odd = gemm(64, 64, 64);
  odd.dims[0].first = "rows";
  EXPECT_THROW(lookup.find(odd), Error);
  LookupFiles missing;
  missing.own = "/nonexistent/tuned.db";
  EXPECT_THROW(Lookup::open(here_, missing), Error);
}

// A norm and gates change little of what a product of few rows costs.
TEST_F(LookupOrder, FusedProductsUseWinnersOfPlainOnes) {
  const auto product = [](std::vector<std::pair<std::string, std::string>> more, std::int64_t n) {
    std::vector<std::pair<std::string, std::string>> attributes{{"layout", "nt"}};
    attributes.insert(attributes.end(), more.begin(), more.end());
    return Problem{"gemm", DType::f16, DType::f16, attributes, {{"m", 1}, {"n", n}, {"k", 4096}}};
  };
  const auto gemv = [](int cols, int tn) {
    return Config{"gemv",
                  {{"THREADS", 128},
                   {"COLS", cols},
                   {"VB", 8},
                   {"VA", 8},
                   {"TN", tn},
                   {"UNROLL", 2},
                   {"SPLIT", 1}}};
  };
  const Problem normed = product({{"prologue", "rmsnorm"}}, 4096);
  const Problem gated = product({{"epilogue", "bias,swiglu"}, {"prologue", "rmsnorm"}}, 4096);
  databases_.add(winner(product({}, 4096), here_, gemv(1, 4)));
  databases_.add(winner(product({{"epilogue", "bias"}}, 8192), here_, gemv(2, 2)));
  const Lookup before = databases_.open(here_);
  EXPECT_EQ(before.find(normed).config, gemv(1, 4));
  EXPECT_EQ(before.find(normed).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(before.find(gated).config, gemv(2, 2));
  databases_.add(winner(product({{"prologue", "rmsnorm"}}, 4096), here_, gemv(4, 1)));
  // A single column of the product cannot be a gate and an up.
  databases_.add(winner(product({}, 16384), here_, gemv(1, 1)));
  const Lookup after = databases_.open(here_);
  EXPECT_EQ(after.find(normed).config, gemv(4, 1));
  EXPECT_EQ(after.find(normed).origin, LookupOrigin::exact);
  EXPECT_NE(after.find(product({{"epilogue", "swiglu"}}, 8192)).config, gemv(1, 1));
}

// Neither does what is computed beside an attention's products, but a window does.
TEST_F(LookupOrder, AttentionUsesWinnersWithoutOptionsThatReadNothing) {
  const auto attention = [](std::vector<std::pair<std::string, std::string>> options) {
    options.insert(options.begin(), {"mask", "causal"});
    return Problem{
        "attention",
        DType::f32,
        DType::f32,
        options,
        {{"batch", 2}, {"heads", 4}, {"kv_heads", 4}, {"q", 64}, {"kv", 64}, {"dim", 64}}};
  };
  const auto tile = [](int bq) {
    return Config{"vector",
                  {{"BQ", bq}, {"BK", 16}, {"TQ", 2}, {"LANES", 8}, {"VEC", 4}, {"TOGETHER", 2}}};
  };
  const Problem all =
      attention({{"softcap", "30"}, {"sinks", "head"}, {"lse", "stored"}, {"lengths", "ragged"}});
  databases_.add(winner(attention({}), here_, tile(32)));
  const Lookup before = databases_.open(here_);
  EXPECT_EQ(before.find(all).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(before.find(all).config, tile(32));
  EXPECT_NE(before.find(attention({{"window", "16"}})).origin, LookupOrigin::nearest_shape);
  databases_.add(winner(all, here_, tile(16)));
  const Lookup after = databases_.open(here_);
  EXPECT_EQ(after.find(all).origin, LookupOrigin::exact);
  EXPECT_EQ(after.find(all).config, tile(16));
}

}  // namespace
}  // namespace greta::test::order_test
