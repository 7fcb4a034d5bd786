// Protects: the references of elementwise operations, compared with values computed by hand, and
// with wrong results.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/reference/activation.hpp"
#include "kernels/reference/elements.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/filled.hpp"

namespace greta::test::elements_reference_test {
namespace {

using test::filled;

constexpr double infinity = std::numeric_limits<double>::infinity();
const double nan = std::numeric_limits<double>::quiet_NaN();

/// A problem with these inputs, in the order of its operands.
struct Case {
  Case(const std::string& key, const std::vector<std::vector<double>>& contents)
      : problem(Problem::parse(key).value()), kernel(built_in(problem.op)) {
    auto next = contents.begin();
    for (const TensorSpec& spec : kernel.tensors(problem)) {
      if (spec.role != Role::output) inputs.push_back(filled(spec, *next++));
    }
    reference = kernel.reference(problem, inputs, 1);
    for (const TensorSpec& spec : kernel.tensors(problem)) {
      if (spec.role != Role::input) outputs.push_back({spec, {}});
    }
  }

  /// Returns the expected values of each output.
  std::vector<std::vector<double>> values() const {
    std::vector<std::vector<double>> lists;
    const auto expected = reference->expected();
    for (const auto& output : *expected) {
      auto& list = lists.emplace_back();
      for (const Expected& element : output) list.push_back(element.value);
    }
    return lists;
  }

  Verdict judge(const std::vector<std::vector<double>>& results) const {
    std::vector<HostTensor> tensors;
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      tensors.push_back(filled(outputs[i].spec, results[i]));
    }
    return reference->check(tensors);
  }

  /// Expects that the expected values pass, and that each single element that is off by `factor` of
  /// its bound (or by one bit, if it must be exact) fails.
  void expect_each_to_matter(double factor) const {
    const auto right = values();
    ASSERT_EQ(right.size(), outputs.size());
    EXPECT_TRUE(judge(right).passed) << judge(right).detail;
    const auto expected = *reference->expected();
    for (std::size_t output = 0; output < right.size(); ++output) {
      ASSERT_EQ(right[output].size(), outputs[output].spec.elements());
      for (std::size_t i = 0; i < right[output].size(); ++i) {
        auto wrong = right;
        wrong[output][i] += std::max(factor * expected[output][i].bound, 1e-3);
        EXPECT_FALSE(judge(wrong).passed) << problem.op << ' ' << output << ' ' << i;
        wrong[output][i] = nan;
        EXPECT_FALSE(judge(wrong).passed) << problem.op << ' ' << output << ' ' << i;
      }
    }
  }

  Problem problem;
  const Operation& kernel;
  std::vector<HostTensor> inputs, outputs;
  std::unique_ptr<Reference> reference;
};

using Values = std::vector<std::vector<double>>;

void expect_near(const std::vector<double>& got, const std::vector<double>& want) {
  ASSERT_EQ(got.size(), want.size());
  for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-9) << i;
}

TEST(ElementsReference, Adds) {
  const Case c("add dtype=f16 out=f32 rows=2 cols=2", {{1, 2, -3, 0.5}, {4, -2, 3, 0.25}});
  EXPECT_EQ(c.values(), (Values{{5, 0, 0, 0.75}}));
  c.expect_each_to_matter(1.01);
}

// A sum rounds to f32 and then to f16. Here the f32 value is the midpoint of two f16 numbers, and
// the result is the farther one.
TEST(ElementsReference, AddMayRoundTwice) {
  const Case c("add dtype=f32 out=f16 rows=1 cols=1", {{1 + 0x1p-11}, {0.99 * 0x1p-24}});
  EXPECT_TRUE(c.judge({{1}}).passed);
  EXPECT_TRUE(c.judge({{1 + 0x1p-10}}).passed);
  EXPECT_FALSE(c.judge({{1 - 0x1p-11}}).passed);
}

TEST(ElementsReference, Gelu) {
  const std::vector<double> x{1, -0.5, 0, -10};
  const Case tanh("gelu dtype=f32 out=f32 rows=1 cols=4", {x});
  expect_near(tanh.values()[0], {0.84119199060, -0.15428599017, 0, 0});
  const Case erf("gelu dtype=f32 out=f32 form=erf rows=1 cols=4", {x});
  expect_near(erf.values()[0], {0.84134474607, -0.15426876937, 0, 0});
  tanh.expect_each_to_matter(1.01);
  erf.expect_each_to_matter(1.01);
  EXPECT_FALSE(tanh.judge(erf.values()).passed) << "the forms must be told apart";
}

TEST(ElementsReference, SiluMulInBothLayouts) {
  const Case separate("silu_mul dtype=f32 out=f32 rows=2 cols=2", {{1, 2, -1, 0}, {2, 1, 3, 5}});
  const std::vector<double> want{2 * 0.73105857863, 2 * 0.88079707798, -3 * 0.26894142137, 0};
  expect_near(separate.values()[0], want);
  const Case packed("silu_mul dtype=f32 out=f32 layout=packed rows=2 cols=2",
                    {{1, 2, 2, 1, -1, 0, 3, 5}});
  expect_near(packed.values()[0], want);
  packed.expect_each_to_matter(1.01);
}

TEST(ElementsReference, RopeRotatesNeighboursOrHalves) {
  // One token with two heads of four elements at position 1: a quarter turn, then none.
  const std::vector<double> x{1, 2, 3, 4, 5, 6, 7, 8}, table{9, 9, 9, 9, 0, 1, 1, 0};
  const Case near("rope dtype=f32 out=f32 tokens=1 heads=2 dim=4 positions=2", {x, {1}, table});
  EXPECT_EQ(near.values(), (Values{{-2, 1, 3, 4, -6, 5, 7, 8}}));
  const Case half("rope dtype=f32 out=f32 style=half tokens=1 heads=2 dim=4 positions=2",
                  {x, {1}, table});
  EXPECT_EQ(half.values(), (Values{{-3, 2, 1, 4, -7, 6, 5, 8}}));
  const Case in_place("rope dtype=f32 out=f32 place=in tokens=1 heads=2 dim=4 positions=2",
                      {x, {1}, table});
  EXPECT_EQ(in_place.values(), near.values());
  half.expect_each_to_matter(1.01);
  const Case outside("rope dtype=f32 out=f32 tokens=1 heads=2 dim=4 positions=2", {x, {2}, table});
  const auto values = outside.values()[0];
  EXPECT_EQ(values.size(), 8U);
  for (const double value : values) EXPECT_TRUE(std::isnan(value));
}

TEST(ElementsReference, KvUpdateWritesWhatItAppendsAndNothingElse) {
  // Two tokens of two heads with two elements, appended at 1 of 4.
  const std::vector<double> k{1, 2, 3, 4, 5, 6, 7, 8}, v{-1, -2, -3, -4, -5, -6, -7, -8};
  const std::vector<double> old(16, 0.5);
  const std::string key = "kv_update dtype=f32 out=f32 tokens=2 kv_heads=2 dim=2 capacity=4";
  const Case c(key, {k, v, {1}, old, old});
  const double o = 0.5;
  EXPECT_EQ(c.values(), (Values{{o, o, 1, 2, 5, 6, o, o, o, o, 3, 4, 7, 8, o, o},
                                {o, o, -1, -2, -5, -6, o, o, o, o, -3, -4, -7, -8, o, o}}));
  c.expect_each_to_matter(1);
  const Case late(key, {k, v, {3}, old, old});
  EXPECT_EQ(late.values()[0],
            (std::vector<double>{o, o, o, o, o, o, 1, 2, o, o, o, o, o, o, 3, 4}));
}

// Two sequences of a token with two heads of queries and one of keys, of two elements: a quarter
// turn at position 1, none at position 0.
TEST(ElementsReference, RopeAppendRotatesAndAppends) {
  const std::vector<double> q{1, 2, 3, 4, 5, 6, 7, 8}, k{3, 4, 6, 8}, v{-1, -2, -3, -4};
  const std::vector<double> positions{1, 0}, table{1, 0, 0, 1}, slots{2, 0}, old(12, 0.5);
  const std::string rest = "batch=2 tokens=1 heads=2 kv_heads=1 dim=2 positions=2 capacity=3";
  const double o = 0.5;
  const Case c("rope_append dtype=f32 out=f32 " + rest,
               {q, k, v, positions, table, slots, old, old});
  EXPECT_EQ(c.values(), (Values{{o, o, o, o, -4, 3, 6, 8, o, o, o, o},
                                {o, o, o, o, -1, -2, -3, -4, o, o, o, o},
                                {-2, 1, -4, 3, 5, 6, 7, 8}}));
  const Case in_place("rope_append dtype=f32 out=f32 place=in " + rest,
                      {q, k, v, positions, table, slots, old, old});
  EXPECT_EQ(in_place.values(), (Values{c.values()[2], c.values()[0], c.values()[1]}));
  in_place.expect_each_to_matter(1.01);
  const Case normed("rope_append dtype=f32 out=f32 norm=rms epsilon=1e-12 " + rest,
                    {q, k, v, {1, 2}, {2, 1}, positions, table, slots, old, old});
  const double root = std::sqrt(12.5);  // of the mean square of 3 and 4
  expect_near(normed.values()[0],
              {o, o, o, o, -4 / root, 6 / root, 6 / root, 4 / root, o, o, o, o});
  EXPECT_EQ(normed.values()[1], c.values()[1]);
  const auto queries = normed.values()[2];
  expect_near({queries.begin(), queries.begin() + 2}, {-4 / std::sqrt(2.5), 1 / std::sqrt(2.5)});
  const auto outside =
      Case("rope_append dtype=f32 out=f32 " + rest, {q, k, v, {2, 0}, table, {3, -1}, old, old})
          .values();
  EXPECT_TRUE(std::isnan(outside[2][0]) && std::isnan(outside[2][3]));
  EXPECT_EQ(outside[2][4], 5);
  EXPECT_EQ(outside[0], old);
  EXPECT_EQ(outside[1], old);
}

// The second sequence has pages 1 and 0.
TEST(ElementsReference, RopeAppendFindsPages) {
  const std::vector<double> old(64, 0.5);
  const Case c(
      "rope_append dtype=f32 out=f32 page_size=\"16\" batch=2 tokens=1 heads=1 kv_heads=1 "
      "dim=2 positions=1 capacity=16",
      {{0, 0, 0, 0}, {9, 9, 7, 7}, {9, 9, 3, 5}, {0, 0}, {1, 0}, {-1, 15}, {1, 0}, old, old});
  const auto keys = c.values()[0];
  EXPECT_EQ(keys[30], 7);
  EXPECT_EQ(c.values()[1][31], 5);
  EXPECT_EQ(std::count(keys.begin(), keys.end(), 0.5), 62);
}

TEST(ElementsReference, EmbeddingLooksUp) {
  const Case c("embedding dtype=f32 out=f32 tokens=3 vocabulary=2 dim=2",
               {{1, 0, 2}, {1, 2, 3, 4}});
  const auto values = c.values()[0];
  EXPECT_EQ((std::vector<double>{values.begin(), values.begin() + 4}),
            (std::vector<double>{3, 4, 1, 2}));
  EXPECT_TRUE(std::isnan(values[4]) && std::isnan(values[5]));
  EXPECT_TRUE(c.judge({values}).passed);
  EXPECT_FALSE(c.judge({{3, 4, 1, 2, 0, nan}}).passed) << "an id outside of the table gives NaN";
}

// Ids have 31 bits, more than a float's mantissa.
TEST(ElementsReference, EmbeddingTellsNeighboursOfALargeTableApart) {
  constexpr std::size_t vocabulary = (std::size_t{1} << 24) + 4, id = (std::size_t{1} << 24) + 1;
  std::vector<double> table(vocabulary);
  table[id] = 1;
  const Case c(fmt::format("embedding dtype=f16 out=f16 tokens=1 vocabulary={} dim=1", vocabulary),
               {{static_cast<double>(id)}, table});
  EXPECT_EQ(c.values(), (Values{{1}}));
}

// A kernel must not round to f16 on the way to f32.
TEST(ElementsReference, IntermediateRoundingToF16Fails) {
  const auto spoilt = [](const Case& c) {
    auto values = c.values();
    for (double& value : values[0]) {
      std::byte half[2];
      store_element(DType::f16, half, 0, value);
      value = load_element(DType::f16, half, 0);
    }
    return c.judge(values).passed;
  };
  EXPECT_FALSE(spoilt({"add dtype=f16 out=f32 rows=1 cols=1", {{1}, {0x1p-12}}}));
  EXPECT_FALSE(spoilt({"gelu dtype=f16 out=f32 rows=1 cols=1", {{1}}}));
  EXPECT_FALSE(spoilt({"gelu dtype=f16 out=f32 form=erf rows=1 cols=1", {{-2.5}}}));
  EXPECT_FALSE(spoilt({"silu_mul dtype=f16 out=f32 rows=1 cols=1", {{1}, {0.7}}}));
  EXPECT_FALSE(
      spoilt({"embedding dtype=f32 out=f32 tokens=1 vocabulary=1 dim=1", {{0}, {1.0001}}}));
}

TEST(ElementsReference, ATypesLimitIsWhereInfinityIsExpected) {
  EXPECT_EQ(rounded(DType::f16, 65519, 0.1).value, 65519);
  EXPECT_EQ(rounded(DType::f16, 65521, 0.1).value, infinity);
  EXPECT_EQ(rounded(DType::f16, -65521, 0.1).value, -infinity);
  EXPECT_EQ(rounded(DType::f16, 65520, 0.1).bound, infinity) << "either side is right";
  EXPECT_EQ(rounded(DType::bf16, 3.4e38, 0).value, infinity);
  EXPECT_EQ(rounded(DType::f32, 3.4e38, 0).value, 3.4e38);
  const Case c("add dtype=f16 out=f16 rows=1 cols=3", {{65504, -65504, infinity}, {32, -32, 1}});
  EXPECT_TRUE(c.judge({{infinity, -infinity, infinity}}).passed);
  EXPECT_FALSE(c.judge({{65504, -infinity, infinity}}).passed);
  EXPECT_FALSE(c.judge({{infinity, -infinity, nan}}).passed);
  const Case edge("add dtype=f16 out=f16 rows=1 cols=1", {{65504}, {16}});
  EXPECT_TRUE(edge.judge({{infinity}}).passed);
  EXPECT_TRUE(edge.judge({{65504}}).passed);
  EXPECT_FALSE(edge.judge({{nan}}).passed);
  // For results half a unit below the limit, infinity is wrong.
  EXPECT_TRUE(std::isfinite(rounded(DType::f16, 65519.5, 0).bound));
}

TEST(ElementsReference, AnOutputOfAnotherShapeFails) {
  const Case c("add dtype=f32 out=f32 rows=1 cols=2", {{1, 2}, {3, 4}});
  const HostTensor short_one = filled({"C", Role::output, DType::f32, 1, 1}, {4});
  const Verdict verdict = c.reference->check({short_one});
  EXPECT_FALSE(verdict.passed);
  EXPECT_EQ(verdict.detail, "C: the output is not 1 x 2");
  EXPECT_EQ(verdict.error, infinity);
  EXPECT_EQ(verdict.bound, 0) << "no error is allowed";
}

TEST(ActivationFunction, VanishesAndKeepsInfinityAndNan) {
  for (const ActivationFunction f :
       {ActivationFunction::silu, ActivationFunction::gelu_tanh, ActivationFunction::gelu_erf}) {
    EXPECT_EQ(activate(f, infinity), infinity);
    EXPECT_EQ(activate(f, -infinity), 0);
    EXPECT_TRUE(std::isnan(activate(f, nan)));
    for (const double x : {-1000.0, -90.0, -13.0, -5.0, -1e-3, 1e-3, 5.0, 1000.0}) {
      EXPECT_LE(activation_error(f, x), 2e-5 * std::max(std::abs(activate(f, x)), 1e-26)) << x;
      EXPECT_GT(activation_error(f, x), 0) << x;
    }
  }
}

}  // namespace
}  // namespace greta::test::elements_reference_test
