// Protects: rules that force configurations. What they match, what they refuse when they are read,
// which configuration of a variant is the best known one, and what a problem does not allow.
#include <gtest/gtest.h>

#include <fstream>

#include "kernels/prior/predicted_config.hpp"
#include "tests/catalog.hpp"
#include "tests/db/lookup/lookup_fixture.hpp"

namespace greta::test::rule_test {
namespace {

using test::card;
using test::gemm;
using test::plain_config;
using test::winner;

class Rules : public ::testing::Test {
 protected:
  UseRule rule(const std::string& text) const {
    return UseRule::parse(Catalog::built_in(), here_, text).value();
  }
  bool matches(const std::string& text, const Problem& problem) const {
    return rule(text).matches(built_in(problem.op), problem);
  }
  std::string refused(const std::string& text) const {
    const auto read = UseRule::parse(Catalog::built_in(), here_, text);
    if (read) return "accepted";
    EXPECT_EQ(read.failure().status, Status::invalid_argument);
    return read.failure().message;
  }

  const DeviceInfo here_ = card("gfx942", "aa");
  test::Databases databases_;
};

TEST_F(Rules, ConditionsAreOnDimensionsTypesAndAttributes) {
  const Problem small = gemm(64, 48, 40);
  for (const char* text :
       {"gemm: naive", "gemm m=64: naive", "gemm m<=64 n>=48 k<41: naive", "gemm m>63 m<65: naive",
        "gemm m != 65: naive", "gemm dtype=f32: naive", "gemm layout=nn: naive",
        "gemm layout!=nt: naive", "*: naive", "* m<=64: naive", "gemm batch=1: naive",
        "gemm out=f32 m = 64 : naive"}) {
    EXPECT_TRUE(matches(text, small)) << text;
  }
  for (const char* text :
       {"rmsnorm: naive", "gemm m<64: naive", "gemm m>=65: naive", "gemm m!=64: naive",
        "gemm dtype=f16: naive", "gemm dtype!=f32: naive", "gemm layout=nt: naive",
        "gemm m=64 n=47: naive", "gemm batch>1: naive", "* rows>0: naive", "*: held"}) {
    EXPECT_FALSE(matches(text, small)) << text;
  }
  // Values are canonical, and an attribute that is absent has its default.
  const Problem fused =
      Problem::parse("gemm dtype=f32 out=f32 epilogue=bias,silu m=1 n=2 k=3").value();
  EXPECT_TRUE(matches("gemm epilogue=bias,silu: naive", fused));
  EXPECT_FALSE(matches("gemm epilogue=none: naive", fused));
  EXPECT_TRUE(matches("gemm alpha=1: naive", fused));
  const Problem strided =
      Problem::parse("softmax dtype=f32 out=f32 x_stride=\"128\" rows=4 cols=64").value();
  EXPECT_TRUE(matches("softmax x_stride>64: held", strided));
  EXPECT_FALSE(matches("softmax x_stride<=64: held", strided));
  EXPECT_TRUE(matches("softmax x_stride=\"128\": held", strided));
  EXPECT_EQ(rule("  gemm   m <= 64  :  tiled   BM=64 ").text(), "gemm m<=64: tiled BM=64");
}

TEST_F(Rules, WhatDoesNotExistIsRefusedWhenARuleIsRead) {
  const std::pair<const char*, const char*> cases[] = {
      {"gem: naive", "gem: must be one of *, gemm, "},
      {"gemm mm=1: naive", "mm: must be one of dtype, out, m, n, k, "},
      {"gemm m=one: naive", "m=one: must be a whole number"},
      {"gemm m: naive", "\"m\": a condition must be NAME, one of"},
      {"gemm m=: naive", "\"m\": a condition must be NAME, one of"},
      {"gemm dtype=f17: naive", "dtype=f17: must be f32, "},
      {"gemm dtype<f32: naive", "types have no order"},
      {"gemm layout=xx: naive", "layout=xx: must be nn, nt, tn or tt"},
      {"gemm layout<nt: naive", "only numbers have an order"},
      {"gemm: naiv", "naiv: must be one of gemv, naive, "},
      {"gemm: tiled BMM=64", "BMM: must be one of BM, BN, "},
      {"gemm: tiled BM=many", "BM=many: must be a whole number"},
      {"gemm: tiled BM", "\"BM\": must be PARAMETER=VALUE"},
      {"gemm: tiled BM=64 BM=32", "BM is given twice"},
      {"gemm m=1", "must be OPERATION CONDITIONS: VARIANT VALUES"},
      {"gemm m=1:", "the variant is missing"},
      {"*: nope", "no operation has this variant, these fields and parameters"},
      {"* rows=1: gemv", "no operation has this variant, these fields and parameters"},
      {"", "must be OPERATION CONDITIONS: VARIANT VALUES"}};
  for (const auto& [text, message] : cases) {
    const std::string why = refused(text);
    EXPECT_NE(why.find(message), std::string::npos) << text << " → " << why;
    EXPECT_EQ(why.find('\n'), std::string::npos) << why;
    EXPECT_TRUE(why.starts_with("rule \"" + std::string(text) + "\": ")) << why;
  }
}

TEST_F(Rules, FilesHaveARuleInEachLine) {
  const TemporaryFolder folder;
  std::ofstream(folder / "rules.txt") << "# which GEMMs\n\n  gemm m=1: naive\n*: held\n";
  const auto placed = placed_rules("@" + (folder / "rules.txt").string()).value();
  ASSERT_EQ(placed.size(), 2U);
  EXPECT_EQ(placed[0].place, (folder / "rules.txt").string() + ":3");
  EXPECT_EQ(placed[1].text, "*: held");
  EXPECT_EQ(placed_rules("gemm: naive").value().at(0).text, "gemm: naive");
  EXPECT_FALSE(placed_rules("@" + (folder / "none.txt").string()));
}

TEST_F(Rules, AVariantAloneMeansItsBestKnownConfiguration) {
  const Problem asked = gemm(64, 64, 64);
  using enum BestOfVariant::Source;
  const auto best = [&](std::string_view variant, const UseValues& values = {}) {
    return databases_.open(here_).best_of(asked, variant, values).value();
  };
  // Nothing is known: a valid one of the variant, although another variant is the default.
  EXPECT_EQ(best("naive").source, predicted);
  EXPECT_EQ(best("naive").config.variant, "naive");
  // The winner of the nearest shape of this variant, although a nearer one is of another.
  databases_.add(winner(gemm(64, 64, 72), here_, plain_config(2)));
  databases_.add(
      winner(gemm(64, 64, 65), here_, built_in("gemm").default_config(gemm(64, 64, 65), here_)));
  EXPECT_EQ(best("naive").source, nearest_shape);
  EXPECT_EQ(best("naive").config, plain_config(2));
  // What was recorded of the problem itself, the fastest first, certified or not.
  auto db = TunedDb::open(databases_.files().own.value(), TunedDb::Mode::read_write);
  SessionRecord session{};
  session.device = here_;
  session.problem = asked;
  session.provenance = {"0.1.0", "key", here_.driver, here_.compiler, "2026-11-20T12:00:00Z"};
  session.strategy = "random";
  session.budget = "60s";
  const auto id = db.begin_session(session);
  for (const auto& [number, us] : {std::pair{0, 12.0}, {1, 10.0}, {3, 14.0}}) {
    Trial trial;
    trial.config = plain_config(number);
    trial.problem_key = asked.key();
    trial.verdict.passed = true;
    trial.measurement.samples_us = {us};
    trial.measurement.median_us = trial.measurement.low_us = trial.measurement.high_us = us;
    db.add_trial(id, trial);
  }
  EXPECT_EQ(best("naive").source, recorded);
  EXPECT_EQ(best("naive").config, plain_config(1));
  // Values choose among what is recorded.
  EXPECT_EQ(best("naive", {{"THREADS", "512"}}).config, plain_config(3));
}

// A problem whose rows are not packed, or into which something is fused, uses the winners of the
// plain problem, as a look-up without rules does.
TEST_F(Rules, WinnersOfThePlainProblemAreKnownToo) {
  databases_.add(winner(gemm(8, 64, 64), here_, plain_config(2)));
  databases_.add(winner(Problem::parse("gemm dtype=f32 out=f32 layout=nt m=8 n=64 k=64").value(),
                        here_, plain_config(2)));
  const auto lookup = databases_.open(here_);
  for (const char* text : {"gemm dtype=f32 out=f32 lda=\"72\" m=8 n=64 k=64",
                           "gemm dtype=f32 out=f32 layout=nt prologue=rmsnorm m=8 n=64 k=64"}) {
    const Problem asked = Problem::parse(text).value();
    EXPECT_EQ(lookup.find(asked).config, plain_config(2)) << text;
    const BestOfVariant best = lookup.best_of(asked, "naive").value();
    EXPECT_EQ(best.source, BestOfVariant::Source::nearest_shape) << text;
    EXPECT_EQ(best.config, plain_config(2)) << text;
  }
}

TEST_F(Rules, ValuesReplaceThoseOfTheBestKnownConfiguration) {
  const Problem asked = gemm(256, 256, 256);
  const auto lookup = databases_.open(here_);
  const Config whole = lookup.best_of(asked, "tiled").value().config;
  const std::string other = whole["STAGES"] == 1 ? "2" : "1";
  const Config changed = lookup.best_of(asked, "tiled", {{"STAGES", other}}).value().config;
  EXPECT_EQ(std::to_string(changed["STAGES"]), other);
  EXPECT_TRUE(lookup.catalog().valid(asked, here_, changed));
}

TEST_F(Rules, WhatTheProblemDoesNotAllowNamesTheConstraint) {
  const Problem asked = gemm(64, 64, 64);
  const auto lookup = databases_.open(here_);
  const auto why = [&](const std::string& text) {
    const auto answer = lookup.forced(rule(text), asked);
    if (answer) return std::string("accepted");
    EXPECT_EQ(answer.failure().status, Status::constraints);
    EXPECT_EQ(answer.failure().message.find('\n'), std::string::npos);
    return answer.failure().message;
  };
  const std::string begin = "rule \"gemm: tiled BM=3\": " + asked.key() + ": ";
  EXPECT_TRUE(why("gemm: tiled BM=3").starts_with(begin + "domain: BM=3 is not one of 16, 32"));
  EXPECT_NE(why("gemm: tiled BM=16 TM=16 LX=16").find("tiled: "), std::string::npos)
      << why("gemm: tiled BM=16 TM=16 LX=16");
  // A variant that does not run here: the constraint that prevents it.
  EXPECT_NE(why("gemm: tma").find("tma: "), std::string::npos) << why("gemm: tma");
  EXPECT_NE(why("gemm: vendor").find("vendor"), std::string::npos) << why("gemm: vendor");

  const Answer answer = lookup.forced(rule("gemm: naive THREADS=128"), asked).value();
  EXPECT_EQ(answer.config, plain_config(1));
  EXPECT_EQ(answer.origin, LookupOrigin::forced);
  EXPECT_EQ(answer.origin_text(), "forced");
  EXPECT_EQ(answer.rule, "gemm: naive THREADS=128");
  EXPECT_FALSE(answer.speedup);
}

}  // namespace
}  // namespace greta::test::rule_test
