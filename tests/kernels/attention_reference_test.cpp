// Protects: the FP64 reference of attention accepts correct results and rejects typical errors of
// kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/reference/references.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/attention_cpu.hpp"

namespace greta::test::attention_reference_test {
namespace {

using test::attention_inputs;
using test::attention_problem;
using test::AttentionMistakes;
using test::AttentionShape;
using test::cpu_attention;

/// A problem with inputs and its reference.
struct Case {
  explicit Case(const Problem& p, const std::vector<std::int64_t>& lengths = {})
      : problem(p),
        inputs(attention_inputs(p, 11, lengths)),
        reference(attention_reference(p, inputs, 5)) {}

  Verdict judge(const AttentionMistakes& mistakes = {}) const {
    return reference->check({cpu_attention(problem, inputs, mistakes)});
  }

  Problem problem;
  std::vector<HostTensor> inputs;
  std::unique_ptr<Reference> reference;
};

/// Returns inputs of one head with dimension 8, in which only the first element of each row is not
/// zero.
std::vector<HostTensor> first_elements(const Problem& problem, const std::vector<double>& q,
                                       const std::vector<double>& k, const std::vector<double>& v,
                                       std::int64_t length) {
  auto inputs = attention_inputs(problem, 1, {length});
  const auto fill = [](HostTensor& t, const std::vector<double>& first) {
    for (std::size_t i = 0; i < t.spec.elements(); ++i) {
      store_element(t.spec.dtype, t.data.data(), i, i % 8 == 0 ? first[i / 8] : 0);
    }
  };
  fill(inputs[0], q);
  fill(inputs[1], k);
  fill(inputs[2], v);
  return inputs;
}

/// Returns the first elements of the expected output's rows.
std::vector<double> expected(const Problem& problem, const std::vector<HostTensor>& inputs) {
  const auto rows = attention_reference(problem, inputs, 1)->expected().value().front();
  std::vector<double> first;
  for (std::size_t i = 0; i < rows.size(); i += 8) first.push_back(rows[i].value);
  return first;
}

TEST(AttentionReference, KnowsValuesMadeByHand) {
  const double log3 = std::log(3.0);
  const auto near = [](const std::vector<double>& got, const std::vector<double>& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-6) << i;
  };
  // The scores are 0 and log 3, so the weights are 1/4 and 3/4.
  const Problem two = attention_problem({1, 1, 0, 1, 2, 8, false}, DType::f32, DType::f32, "2");
  near(expected(two, first_elements(two, {0.5}, {0, log3}, {8, 4}, 2)), {5});
  near(expected(two, first_elements(two, {0.5}, {0, log3}, {8, 4}, 1)), {8});
  near(expected(two, first_elements(two, {0.5}, {0, log3}, {8, 4}, 0)), {0});
  // The default scale is 1 / sqrt(8).
  const Problem plain = attention_problem({1, 1, 0, 1, 2, 8, false});
  near(expected(plain, first_elements(plain, {std::sqrt(8.0)}, {0, log3}, {8, 4}, 2)), {5});
  // Two of three keys are valid. The first of two causal queries sees one of them.
  const Problem causal = attention_problem({1, 1, 0, 2, 3, 8, true}, DType::f32, DType::f32, "1");
  near(expected(causal, first_elements(causal, {1, 1}, {0, log3, 9}, {8, 4, 1}, 2)), {8, 5});
  near(expected(causal, first_elements(causal, {1, 1}, {0, log3, 0}, {8, 4, 2}, 3)), {5, 22.0 / 5});
}

TEST(AttentionReference, AgreesWithPlainLoops) {
  for (const auto& [in, out] :
       {std::pair{DType::f32, DType::f32}, {DType::f16, DType::f16}, {DType::bf16, DType::f32}}) {
    for (const bool causal : {false, true}) {
      const Case c(attention_problem({2, 4, 2, 9, 150, 40, causal}, in, out), {150, 77});
      const Verdict verdict = c.judge();
      EXPECT_TRUE(verdict.passed) << c.problem.key() << ": " << verdict.detail;
      EXPECT_EQ(verdict.method, "full");
      EXPECT_GT(verdict.bound, 0);
    }
  }
}

TEST(AttentionReference, BoundsOfF32AreOfItsSize) {
  const Case c(attention_problem({1, 2, 0, 8, 500, 128, true}));
  const auto expected = c.reference->expected().value();
  for (const Expected& e : expected.front()) EXPECT_LT(e.bound, 1e-5);
}

/// A problem that is checked in full; the next one is too large for that.
Problem small(DType in = DType::f16, DType out = DType::f16) {
  return attention_problem({1, 2, 1, 24, 2048, 64, true}, in, out);
}
Problem large() {
  return attention_problem({1, 1, 0, 4200, 4200, 16, true}, DType::f16, DType::f16);
}

TEST(AttentionReference, LargeProblemsPassSampled) {
  const Verdict verdict = Case(large()).judge();
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  EXPECT_EQ(verdict.method, "16 queries of every head in full");
  EXPECT_FALSE(Case(large()).reference->expected());
}

TEST(AttentionReference, CatchesSumsInF16) {
  for (const std::int64_t keys : {1, 16}) {
    AttentionMistakes mistakes;
    mistakes.f16_every = keys;
    EXPECT_FALSE(Case(small()).judge(mistakes).passed) << keys;
    EXPECT_FALSE(Case(small(DType::f16, DType::f32)).judge(mistakes).passed) << keys;
    // Rounding after every 16th key alone is the smaller error.
    if (keys == 16) {
      EXPECT_FALSE(Case(large()).judge(mistakes).passed);
    }
  }
}

TEST(AttentionReference, CatchesScoresInF16) {
  AttentionMistakes mistakes;
  mistakes.f16_scores = true;
  EXPECT_FALSE(Case(small(DType::f32, DType::f32)).judge(mistakes).passed);
}

TEST(AttentionReference, CatchesKeysThatAreLeftOut) {
  AttentionMistakes one, tile;
  one.skip_from = tile.skip_from = 1000;
  one.skip_to = 1001;
  tile.skip_to = 1016;
  EXPECT_FALSE(Case(small()).judge(one).passed);
  EXPECT_FALSE(Case(large()).judge(one).passed);
  EXPECT_FALSE(Case(small(DType::bf16, DType::bf16)).judge(tile).passed);
}

TEST(AttentionReference, CatchesAKeyTooManyAndWrongHeads) {
  AttentionMistakes next;
  next.sees_next = true;
  EXPECT_FALSE(Case(small()).judge(next).passed);
  EXPECT_FALSE(Case(large()).judge(next).passed);
  AttentionMistakes heads;
  heads.wrong_heads = true;
  EXPECT_FALSE(Case(attention_problem({1, 4, 2, 3, 100, 16, false})).judge(heads).passed);
}

/// Returns how many of 12 small problems with adversarial inputs are correct.
int right_on_adversarial_inputs(DType type, const AttentionMistakes& mistakes) {
  const Operation& attention = built_in("attention");
  int right = 0;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const Problem problem = attention_problem({3, 4, 2, 4, 70, 16, seed % 2 == 0}, type, type);
    const auto inputs = attention.inputs(problem, seed, InputStyle::adversarial);
    const HostTensor out = cpu_attention(problem, inputs, mistakes);
    right += static_cast<int>(attention_reference(problem, inputs, seed)->check({out}).passed);
  }
  return right;
}

// Errors that plain inputs, with moderate scores and full caches, can't reveal.
TEST(AttentionReference, AdversarialInputsShowWhatPlainOnesHide) {
  AttentionMistakes maximum, lengths, lowest;
  maximum.no_maximum = true;
  lengths.ignores_lengths = true;
  lowest.lowest_score = 0;
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(right_on_adversarial_inputs(type, {}), 12) << to_string(type);
    EXPECT_EQ(right_on_adversarial_inputs(type, maximum), 0) << to_string(type);
    EXPECT_LE(right_on_adversarial_inputs(type, lowest), 1)
        << to_string(type);  // no head's are all far below 0
    EXPECT_LE(right_on_adversarial_inputs(type, lengths), 2) << to_string(type);  // all are full
  }
}

TEST(AttentionReference, CatchesUnwrittenAndInfiniteElements) {
  for (const Problem& problem : {small(), large()}) {
    const Case c(problem);
    for (const double bad :
         {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
      HostTensor out = cpu_attention(c.problem, c.inputs);
      const std::size_t at = 21 * static_cast<std::size_t>(out.spec.cols) + 7;
      store_element(out.spec.dtype, out.data.data(), at, bad);
      const Verdict verdict = c.reference->check({out});
      EXPECT_FALSE(verdict.passed);
      EXPECT_NE(verdict.detail.find("the first at (21, 7)"), std::string::npos) << verdict.detail;
    }
  }
}

TEST(AttentionReference, CatchesAResultOfTheWrongShape) {
  const Case c(small());
  HostTensor out = cpu_attention(c.problem, c.inputs);
  out.spec.rows -= 1;
  EXPECT_FALSE(c.reference->check({out}).passed);
}

}  // namespace
}  // namespace greta::test::attention_reference_test
