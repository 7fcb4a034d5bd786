// Protects: a search within a user's limits has exactly the configurations that meet them, and
// limits that a space does not have are refused by name.

#include "tuner/search/limits.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/layers.hpp"

namespace greta::test::limits_test {
namespace {

Space space() {
  return Space({{.variant = "tiled",
                 .parameters = {{"BM", {16, 32, 64}}, {"BK", {8, 16}}},
                 .constraints = {{"tile", "BM is too large", p["BM"] * p["BK"] <= 512}}},
                {.variant = "naive", .parameters = {{"THREADS", {64, 128}}}, .constraints = {}}});
}

TEST(SearchLimits, LeaveExactlyWhatMeetsThem) {
  const Space all = space();
  const SearchLimits limits{.variants = {"tiled"}, .values = {{"BM", {16, 64}}}};
  const Space within = limited(all, limits);
  std::uint64_t expected = 0;
  for (std::uint64_t i = 0; i < all.count(); ++i) {
    const Config config = all.at(i);
    const bool meets = config.variant == "tiled" && config["BM"] != 32;
    expected += meets ? 1 : 0;
    EXPECT_EQ(within.valid(config), meets) << config.text();
  }
  EXPECT_EQ(within.count(), expected);
  EXPECT_EQ(limits.text(), "variant tiled, BM=16,64");
  EXPECT_EQ(limited(all, {}).count(), all.count());
}

TEST(SearchLimits, OfAParameterLeaveOutVariantsThatLackIt) {
  const Space within = limited(space(), {.variants = {}, .values = {{"THREADS", {64}}}});
  EXPECT_EQ(within.count(), 1U);
  EXPECT_EQ(within.at(0).variant, "naive");
}

TEST(SearchLimits, ThatASpaceDoesNotHaveAreRefused) {
  const auto refusal = [](const SearchLimits& limits) {
    const auto checked = check_limits(space(), limits);
    return checked ? std::string("accepted") : checked.failure().message;
  };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({.variants = {"naive"}, .values = {}}), "accepted");
  EXPECT_EQ(refusal({.variants = {"tilde"}, .values = {}}),
            "variant tilde: must be one of tiled, naive; did you mean tiled?");
  EXPECT_EQ(refusal({.variants = {}, .values = {{"BN", {16}}}}),
            "fix BN: must be one of BM, BK, THREADS; did you mean BM?");
  EXPECT_EQ(refusal({.variants = {}, .values = {{"BM", {48}}}}),
            "fix BM=48: the values of BM are 16, 32, 64");
  const auto none = refusal({.variants = {}, .values = {{"BM", {64}}, {"BK", {16}}}});
  EXPECT_NE(none.find("no configuration is valid within these limits"), std::string::npos) << none;
  EXPECT_NE(none.find("BM is too large"), std::string::npos) << none;
}

}  // namespace
}  // namespace greta::test::limits_test
