// Protects: a problem that permits something is answered by the exact problem's winner where it has
// none of its own, unless the static prior knows better, and never the other way round.
#include <gtest/gtest.h>

#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::permission_test {
namespace {

using test::card;
using test::winner;

Problem product(bool permitted, std::int64_t m, const char* weights = "q4_k") {
  Problem problem{
      "quantized_gemm", DType::f16, DType::f16, {}, {{"m", m}, {"n", 4096}, {"k", 4096}}};
  if (weights != std::string_view("int4")) problem.attributes = {{"weights", weights}};
  if (permitted) problem.attributes.emplace_back("math", "rounded_weights");
  return problem;
}

/// Returns a valid default of the problem's variants that is not the chosen one.
Config other_than(const Config& chosen, const Problem& problem, const DeviceInfo& device) {
  const Operation& operation = built_in(problem.op);
  const kernels::Instance instance(operation, problem, device);
  for (const Variant& variant : operation.variants) {
    for (const Config& one : variant.defaults(instance.shape(), device)) {
      if (!instance.rejects(one) && one != chosen) return one;
    }
  }
  throw Error("there is no other configuration");
}

class Permissions : public ::testing::Test {
 protected:
  const DeviceInfo amd_ = card("gfx942", "aa"), hopper_ = card("sm_90", "bb");
  test::Databases databases_;
};

TEST_F(Permissions, TheExactWinnerAnswersWhereThereIsNoOther) {
  const Problem exact = product(false, 256), asked = product(true, 256);
  const Config config = other_than(databases_.open(amd_).find(asked).config, exact, amd_);
  databases_.add(winner(exact, amd_, config));
  const Lookup before = databases_.open(amd_);
  EXPECT_EQ(before.find(asked).config, config);
  EXPECT_EQ(before.find(asked).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(before.find(asked).problem, exact.key());
  EXPECT_EQ(before.find(product(true, 384)).problem, exact.key());
  EXPECT_EQ(before.find(product(true, 256, "q8_0")).origin, LookupOrigin::predicted);
  const Config own = other_than(config, asked, amd_);
  databases_.add(winner(product(true, 512), amd_, own));
  const Lookup after = databases_.open(amd_);
  EXPECT_EQ(after.find(asked).problem, product(true, 512).key());
  EXPECT_EQ(after.find(exact).config, config);
  EXPECT_EQ(after.find(exact).origin, LookupOrigin::exact);
}

TEST_F(Permissions, WhatIsPermittedAnswersNoExactProblem) {
  const Problem exact = product(false, 256), asked = product(true, 256);
  const Config before = databases_.open(amd_).find(exact).config;
  databases_.add(winner(asked, amd_, other_than(before, exact, amd_)));
  EXPECT_EQ(databases_.open(amd_).find(exact).origin, LookupOrigin::predicted);
  EXPECT_EQ(databases_.open(amd_).find(exact).config, before);
}

// Rounding is predicted to be much faster here, and is.
TEST_F(Permissions, APredictionThatUsesThePermissionBeatsTheExactWinner) {
  const Problem exact = product(false, 2048), asked = product(true, 2048);
  const Config best = databases_.open(hopper_).find(exact).config;
  ASSERT_EQ(best.variant, "tma");
  EXPECT_EQ(best["ROUND"], 0);
  databases_.add(winner(exact, hopper_, best));
  const Lookup lookup = databases_.open(hopper_);
  EXPECT_EQ(lookup.find(exact).origin, LookupOrigin::exact);
  EXPECT_EQ(lookup.find(asked).origin, LookupOrigin::predicted);
  EXPECT_EQ(lookup.find(asked).config["ROUND"], 1);
}

// Few rows gain nothing, so that the exact winner is as good as what is predicted.
TEST_F(Permissions, AnExactWinnerThatIsPredictedAsGoodAnswers) {
  const Problem exact = product(false, 16, "int4"), asked = product(true, 16, "int4");
  const Config best = databases_.open(hopper_).find(exact).config;
  databases_.add(winner(exact, hopper_, best));
  const Lookup lookup = databases_.open(hopper_);
  EXPECT_EQ(lookup.find(asked).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(lookup.find(asked).problem, exact.key());
}

TEST_F(Permissions, ProductsOfTf32AreTheSame) {
  Problem exact = gemm(64, 64, 64), asked = exact;
  asked.attributes = {{"math", "tf32x3"}};
  databases_.add(winner(exact, amd_, plain_config(1)));
  EXPECT_EQ(databases_.open(amd_).find(asked).problem, exact.key());
  EXPECT_EQ(databases_.open(amd_).find(asked).config, plain_config(1));
}

}  // namespace
}  // namespace greta::test::permission_test
