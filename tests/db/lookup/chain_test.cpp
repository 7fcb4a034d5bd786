// Protects: the choice for a chain of operations is stored like a winner, is found for its shape
// and the nearest one, gives way to the default where it is not possible, and can be forced.
#include <gtest/gtest.h>

#include "kernels/chains/chains.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::chain_test {
namespace {

using test::card;
using test::winner;

class LookupOfChains : public ::testing::Test {
 protected:
  static Problem gate_up(std::int64_t rows) { return gate_up_chain(DType::f16, rows, 1376, 512); }

  const DeviceInfo here_ = card("gfx942", "aa"), beside_ = card("gfx1100", "bb");
  test::Databases databases_;
};

TEST_F(LookupOfChains, TheDefaultAnswersWithoutAChoice) {
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.answer(gate_up(512)).config.variant, "parts");
  EXPECT_EQ(lookup.answer(gate_up(1)).config.variant, "fused");
  EXPECT_EQ(lookup.answer(gate_up(1)).origin, LookupOrigin::fallback);
}

TEST_F(LookupOfChains, AChoiceIsOfItsShapeAndOfTheNearest) {
  databases_.add(winner(gate_up(512), here_, {"gated", {}}));
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.answer(gate_up(512)).config.variant, "gated");
  EXPECT_EQ(lookup.answer(gate_up(512)).origin, LookupOrigin::exact);
  EXPECT_EQ(lookup.answer(gate_up(256)).config.variant, "gated");
  EXPECT_EQ(lookup.answer(gate_up(256)).origin, LookupOrigin::nearest_shape);
  EXPECT_EQ(databases_.open(beside_).answer(gate_up(512)).config.variant, "parts");
}

TEST_F(LookupOfChains, AChoiceThatIsNotPossibleForAShapeIsNotUsed) {
  databases_.add(winner(gate_up(8), here_, {"normed", {}}));
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.answer(gate_up(8)).config.variant, "normed");
  EXPECT_EQ(lookup.answer(gate_up(9)).config.variant, "parts");
}

// Products that may round weights gain differently by a fusion: their choice is another one, which
// gives way to that of exact products where there is none.
TEST_F(LookupOfChains, APermissionIsPartOfTheQuestion) {
  const Problem exact = gate_up_chain(DType::f16, 512, 1376, 512, ChainWeights::quantised);
  const Problem permitted = with_rounded_weights(exact);
  EXPECT_NE(permitted.key(), exact.key());
  EXPECT_EQ(with_rounded_weights(permitted), permitted);
  EXPECT_EQ(with_rounded_weights(gate_up(512)), gate_up(512));
  databases_.add(winner(exact, here_, {"gated", {}}));
  EXPECT_EQ(databases_.open(here_).answer(permitted).config.variant, "gated");
  databases_.add(winner(permitted, here_, {"parts", {}}));
  const auto lookup = databases_.open(here_);
  EXPECT_EQ(lookup.answer(permitted).config.variant, "parts");
  EXPECT_EQ(lookup.answer(permitted).origin, LookupOrigin::exact);
  EXPECT_EQ(lookup.answer(exact).config.variant, "gated");
}

TEST_F(LookupOfChains, ARuleForcesAnAlternative) {
  databases_.add(winner(gate_up(512), here_, {"gated", {}}));
  const auto lookup = databases_.open(here_);
  const auto rule = UseRule::parse(lookup.questions(), here_, "gate_up rows>8: parts");
  ASSERT_TRUE(rule);
  EXPECT_TRUE(rule->matches(chains().at("gate_up"), gate_up(512)));
  EXPECT_FALSE(rule->matches(chains().at("gate_up"), gate_up(8)));
  const auto forced = lookup.forced(*rule, gate_up(512));
  ASSERT_TRUE(forced);
  EXPECT_EQ(forced->config.variant, "parts");
  const auto impossible = UseRule::parse(lookup.questions(), here_, "gate_up: fused");
  ASSERT_TRUE(impossible);
  const auto refused = lookup.forced(*impossible, gate_up(512));
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.failure().message.find("few_rows"), std::string::npos);
  EXPECT_FALSE(UseRule::parse(lookup.questions(), here_, "gate_up: tiled"));
  EXPECT_FALSE(UseRule::parse(lookup.catalog(), here_, "gate_up: gated"));
}

}  // namespace
}  // namespace greta::test::chain_test
