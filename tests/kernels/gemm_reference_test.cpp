// Protects: the FP64 reference of GEMM accepts correct results and rejects typical errors of
// kernels, and its bounds are tight and rigorous.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>

#include "kernels/reference/findings.hpp"
#include "kernels/reference/gemm.hpp"
#include "kernels/reference/gemm_data.hpp"
#include "kernels/reference/gemm_error.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/gemm_cpu.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::gemm_reference_test {
namespace {

using test::cpu_gemm;
using test::gemm_problem;
using test::Mistakes;

using Attributes = std::vector<std::pair<std::string, std::string>>;

/// A problem with inputs, its reference, and a correct result to modify.
struct Case {
  explicit Case(const Problem& p)
      : problem(p),
        inputs(test::random_inputs(built_in("gemm").tensors(p), 11)),
        reference(gemm_reference(p, inputs, 5)),
        right(cpu_gemm(p, inputs)) {}

  Verdict judge(const HostTensor& c) const { return reference->check({c}); }
  Verdict judge(const Mistakes& mistakes) const {
    return judge(cpu_gemm(problem, inputs, mistakes));
  }
  HostTensor with(std::int64_t row, std::int64_t col, double value) const {
    HostTensor c = right;
    store_element(c.spec.dtype, c.data.data(), static_cast<std::size_t>(row * c.spec.cols + col),
                  value);
    return c;
  }
  double at(std::int64_t row, std::int64_t col) const {
    return right.at(static_cast<std::size_t>(row * right.spec.cols + col));
  }

  Problem problem;
  std::vector<HostTensor> inputs;
  std::unique_ptr<Reference> reference;
  HostTensor right;
};

/// A problem that is checked in full; the next one has too many elements for that.
Problem small(Attributes attributes = {}, DType type = DType::f32) {
  return gemm_problem(70, 90, 40, type, type, std::move(attributes));
}
Problem large(Attributes attributes = {}, DType type = DType::f32) {
  return gemm_problem(4100, 4130, 8, type, type, std::move(attributes));
}

/// Returns the case of a problem that several tests use; a large one takes a second.
const Case& shared_case(const Problem& problem) {
  static std::map<std::string, std::unique_ptr<Case>> cases;
  auto& known = cases[problem.key()];
  if (!known) known = std::make_unique<Case>(problem);
  return *known;
}

TEST(GemmReference, AgreesWithThreeLoops) {
  const std::vector<Attributes> all{{},
                                    {{"layout", "nt"}},
                                    {{"layout", "tn"}},
                                    {{"epilogue", "bias"}},
                                    {{"epilogue", "bias,residual,silu"}},
                                    {{"epilogue", "gelu"}},
                                    {{"alpha", "0.1"}, {"beta", "-2"}},
                                    {{"layout", "tn"}, {"epilogue", "residual"}, {"beta", "0.5"}}};
  for (const Attributes& attributes : all) {
    for (const DType type : {DType::f32, DType::f16}) {
      const Case c(small(attributes, type));
      const Verdict verdict = c.judge(c.right);
      EXPECT_TRUE(verdict.passed) << c.problem.key() << ": " << verdict.detail;
      EXPECT_EQ(verdict.method, "full");
      EXPECT_GT(verdict.bound, 0);
    }
  }
}

/// A problem of few rows, for which there are gates and norms.
Problem few_rows(Attributes attributes, DType type = DType::f32) {
  return gemm_problem(7, 90, 40, type, type, std::move(attributes));
}

TEST(GemmReference, AgreesWithThreeLoopsOnGatesAndNorms) {
  const std::vector<Attributes> all{
      {{"epilogue", "swiglu"}},
      {{"layout", "nt"}, {"epilogue", "bias,geglu"}, {"alpha", "-0.5"}},
      {{"layout", "tn"}, {"prologue", "rmsnorm"}, {"epsilon", "0.25"}},
      {{"layout", "nt"}, {"epilogue", "bias,residual,silu"}, {"prologue", "rmsnorm"}},
      {{"layout", "nt"}, {"epilogue", "bias,swiglu"}, {"prologue", "rmsnorm"}}};
  for (const Attributes& attributes : all) {
    for (const DType type : {DType::f32, DType::f16}) {
      const Case c(few_rows(attributes, type));
      const Verdict verdict = c.judge(c.right);
      EXPECT_TRUE(verdict.passed) << c.problem.key() << ": " << verdict.detail;
      EXPECT_EQ(verdict.method, "full");
      EXPECT_FALSE(c.judge(Mistakes{39, 40, false, false}).passed) << c.problem.key();
    }
  }
}

// Problems that are too large for all elements are checked by single ones.
TEST(GemmReference, ElementsOfGatesAndNormsAgreeWithRows) {
  const Case c(few_rows({{"epilogue", "bias,swiglu"}, {"prologue", "rmsnorm"}}));
  const GemmData data(c.problem, c.inputs, kernels::gemm_operands(c.problem, c.inputs));
  const auto rows = c.reference->expected().value().front();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Expected e =
        data.element(static_cast<std::int64_t>(i) / 90, static_cast<std::int64_t>(i) % 90);
    EXPECT_NEAR(e.value, rows[i].value, 1e-12) << i;
    EXPECT_NEAR(e.bound, rows[i].bound, 1e-3 * rows[i].bound) << i;
  }
}

TEST(GemmReference, LargeProblemsPassSampled) {
  const Case linear(large({{"epilogue", "bias,residual"}, {"beta", "0.5"}}));
  Verdict verdict = linear.judge(linear.right);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  EXPECT_EQ(verdict.method, "16 rows in full, Freivalds over all columns");
  const Case gated(large({{"epilogue", "gelu"}}, DType::f16));
  verdict = gated.judge(gated.right);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  EXPECT_NE(verdict.method.find("one random element of every 16 x 16 block"), std::string::npos);
}

// Cases for emulators and other machines are checked against these values.
TEST(GemmReference, GivesEveryElementOfASmallProblem) {
  for (const Attributes& attributes : {Attributes{}, Attributes{{"epilogue", "bias,gelu"}}}) {
    const Case c(small(attributes, DType::f16));
    const auto expected = c.reference->expected();
    ASSERT_TRUE(expected);
    ASSERT_EQ(expected->size(), 1U);
    ASSERT_EQ(expected->front().size(), c.right.spec.elements());
    for (std::size_t i = 0; i < expected->front().size(); ++i) {
      const auto& [value, bound] = expected->front()[i];
      EXPECT_LE(std::abs(c.right.at(i) - value), bound) << i;
      EXPECT_LT(bound, 0.01) << i;
    }
  }
  EXPECT_FALSE(shared_case(large()).reference->expected());
}

TEST(GemmReference, SamplesAgreeWithAResultOfAnySize) {
  for (const Problem& problem : {small(), large()}) {
    const Case& c = shared_case(problem);
    constexpr std::size_t most = 5000;
    const auto outputs = c.reference->sample(most);
    ASSERT_EQ(outputs.size(), 1U);
    const auto& sample = outputs[0];
    EXPECT_EQ(sample.size(), most);
    const std::uint64_t last = c.right.spec.elements() - 1;
    EXPECT_EQ(sample.front().index, 0U);
    EXPECT_EQ(sample.back().index, last);
    std::uint64_t before = 0;
    for (const auto& [index, expected] : sample) {
      EXPECT_LE(before, index);
      EXPECT_NEAR(c.right.at(index), expected.value, expected.bound) << index;
      EXPECT_LT(expected.bound, 1e-2);
      before = index;
    }
  }
}

TEST(SpreadIndices, AreOneOfEachPart) {
  EXPECT_EQ(spread_indices(100, 100).size(), 100U);
  EXPECT_EQ(spread_indices(100, 200).size(), 100U);
  EXPECT_TRUE(spread_indices(100, 0).empty());
  EXPECT_TRUE(spread_indices(0, 5).empty());
  const auto kept = spread_indices(100, 7);
  ASSERT_EQ(kept.size(), 7U);
  for (std::size_t part = 0; part < kept.size(); ++part) {
    EXPECT_GE(kept[part], part * 100 / 7);
    EXPECT_LT(kept[part], (part + 1) * 100 / 7);
  }
  EXPECT_EQ(kept.front(), 0U);
  EXPECT_EQ(kept.back(), 99U);
}

TEST(GemmReference, CatchesOneWrongElementAndSaysWhere) {
  const Attributes everything{{"alpha", "0.5"}, {"beta", "0.5"}, {"epilogue", "bias,residual"}};
  for (const Problem& problem : {small(), large(), large(everything)}) {
    const Case& c = shared_case(problem);
    const std::int64_t row = problem.dim("m") - 3, col = 57;
    const Verdict verdict = c.judge(c.with(row, col, c.at(row, col) + 0.01));
    EXPECT_FALSE(verdict.passed);
    EXPECT_NE(verdict.detail.find("element (" + std::to_string(row) + ", 57)"), std::string::npos)
        << verdict.detail;
    EXPECT_GT(verdict.ratio(), 1);
  }
}

// Outside the rows that are checked in full, the limit of an element is 8 times the root of the sum
// of squared bounds over 256 columns, computed here for elements with a variance of 1/12.
TEST(GemmReference, FreivaldsBoundIsWhatItIsSaidToBe) {
  for (const DType type : {DType::f32, DType::f16, DType::bf16}) {
    const Case& c = shared_case(large({}, type));
    const auto k = static_cast<double>(c.problem.dim("k"));
    const double norm = std::sqrt(256 * k) / 12;  // norm of products, and of elements
    const double bound = 8 * norm * (0x1p-24 * 8 * std::sqrt(k) + unit_roundoff(type));
    for (const auto& [row, col] : {std::pair{1235, 300}, {4001, 4000}}) {
      const double right = c.at(row, col);
      EXPECT_TRUE(c.judge(c.with(row, col, right + 0.7 * bound)).passed) << to_string(type);
      EXPECT_FALSE(c.judge(c.with(row, col, right + 1.5 * bound)).passed) << to_string(type);
    }
  }
}

TEST(GemmReference, CatchesUnwrittenAndInfiniteElements) {
  for (const Problem& problem : {small(), large(), large({{"epilogue", "silu"}})}) {
    const Case& c = shared_case(problem);
    Verdict verdict = c.judge(c.with(13, 7, std::numeric_limits<double>::quiet_NaN()));
    EXPECT_FALSE(verdict.passed);
    EXPECT_NE(verdict.detail.find("1 NaN and 0 infinite"), std::string::npos) << verdict.detail;
    EXPECT_NE(verdict.detail.find("the first at (13, 7)"), std::string::npos) << verdict.detail;
    EXPECT_FALSE(c.judge(c.with(0, 0, std::numeric_limits<double>::infinity())).passed);
  }
}

TEST(GemmReference, CatchesASkippedKStep) {
  for (const Problem& problem : {small(), large(), large({{"epilogue", "silu"}})}) {
    const std::int64_t k = problem.dim("k");
    EXPECT_FALSE(shared_case(problem).judge(Mistakes{k - 1, k, false, false}).passed)
        << problem.key();
  }
}

TEST(GemmReference, CatchesSwappedTiles) {
  for (const Problem& problem : {small(), large(), large({{"epilogue", "silu"}})}) {
    const Case& c = shared_case(problem);
    HostTensor swapped = c.right;
    auto* data = reinterpret_cast<float*>(swapped.data.data());
    const std::int64_t n = problem.dim("n");
    for (std::int64_t row = 32; row < 64; ++row) {
      std::swap_ranges(data + row * n, data + row * n + 32, data + row * n + 32);
    }
    EXPECT_FALSE(c.judge(swapped).passed) << problem.key();
  }
}

TEST(GemmReference, CatchesAMissingBias) {
  for (const Problem& problem : {small({{"epilogue", "bias"}}), large({{"epilogue", "bias"}}),
                                 large({{"epilogue", "bias,gelu"}})}) {
    EXPECT_FALSE(Case(problem).judge(Mistakes{0, 0, true, false}).passed) << problem.key();
  }
}

TEST(GemmReference, CatchesWrongRounding) {
  for (const Problem& problem : {small({}, DType::f16), large({}, DType::f16)}) {
    EXPECT_FALSE(shared_case(problem).judge(Mistakes{0, 0, false, true}).passed) << problem.key();
  }
}

TEST(GemmReference, CatchesAResultOfTheWrongShape) {
  const Case c(small());
  HostTensor wrong = c.right;
  wrong.spec.rows = 69;
  EXPECT_FALSE(c.judge(wrong).passed);
}

// A sum grows like sqrt(K), and so must its bound: an error of one element among 2^18 must be
// detected.
TEST(GemmReference, CatchesOneElementOfALongSum) {
  const Case c(gemm_problem(8, 8, 1 << 18));
  const Verdict verdict = c.judge(c.right);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  EXPECT_LE(verdict.ratio(), 0.5);
  EXPECT_FALSE(c.judge(Mistakes{1000, 1001, false, false}).passed);
}

// The required tightness for inputs uniform in +-0.5: the sum of K = 512 squared products with mean
// 1/144 and deviation 0.0104 stays below 3.56 + 5 x 0.24.
TEST(GemmErrorModel, IsTight) {
  const GemmTerms terms{9.4, std::sqrt(3.56 + 5 * 0.24), 0, 0, 0};
  EXPECT_LE(GemmErrorModel(gemm_problem(512, 512, 512)).expect(terms).bound, 3e-5);
  const auto f16 = gemm_problem(512, 512, 512, DType::f16, DType::f16);
  EXPECT_LE(GemmErrorModel(f16).expect(terms).bound, 1e-2);
  EXPECT_LE(GemmErrorModel(f16).expect(terms).bound, 1e-3 * 9.4);
}

// The worst case for few terms: all of equal size, where the norm is smallest relative to the sum
// of |a b|.
TEST(GemmErrorModel, IsRigorousForFewTerms) {
  for (std::int64_t k = 1; k <= 6; ++k) {
    const auto terms = static_cast<double>(k);
    const Expected e = GemmErrorModel(gemm_problem(1, 1, k)).expect({0, std::sqrt(terms), 0, 0, 0});
    EXPECT_GE(e.bound, (terms + 2) * terms * 0x1p-24) << k;
  }
}

TEST(GemmErrorModel, ActivationsAreWhatTheyAreCalled) {
  const auto value = [](const char* epilogue, double x) {
    const GemmErrorModel model(
        gemm_problem(1, 1, 1, DType::f32, DType::f32, {{"epilogue", epilogue}}));
    return model.expect({x, std::abs(x), 0, 0, 0});
  };
  EXPECT_NEAR(value("silu", 1).value, 0.73105857863, 1e-10);
  EXPECT_NEAR(value("gelu", 1).value, 0.84119199060, 1e-10);
  EXPECT_NEAR(value("gelu", -0.5).value, -0.15428599017, 1e-10);
  const auto gated = [](const char* epilogue, double gate, double up) {
    const GemmErrorModel model(
        gemm_problem(1, 1, 1, DType::f32, DType::f32, {{"epilogue", epilogue}}));
    return model.expect({gate, std::abs(gate), 0, 0, 0}, {up, std::abs(up), 0, 0, 0}).value;
  };
  EXPECT_NEAR(gated("swiglu", 1, -3), -3 * 0.73105857863, 1e-9);
  EXPECT_NEAR(gated("geglu", -0.5, 2), -2 * 0.15428599017, 1e-9);
  for (const double x : {-1000.0, -90.0, -5.0, -1e-3, 1e-3, 5.0, 1000.0}) {
    for (const char* name : {"silu", "gelu"}) {
      const Expected e = value(name, x);
      EXPECT_TRUE(std::isfinite(e.value) && std::isfinite(e.bound)) << name << x;
      EXPECT_LE(e.bound, 1e-6 * std::max(1.0, std::abs(x))) << name << x;
    }
  }
}

// In f32 the gate is 0 or not, and so the product NaN or infinite.
TEST(GemmErrorModel, ExpectsNothingOfAnInfinityAndAGateThatMayVanish) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const char* epilogue : {"swiglu", "geglu"}) {
    const GemmErrorModel model(
        gemm_problem(1, 1, 1, DType::f32, DType::f32, {{"epilogue", epilogue}}));
    const auto expected = [&](double gate, double up) {
      return model.expect({gate, std::abs(gate), 0, 0, 0}, {up, std::abs(up), 0, 0, 0});
    };
    for (const double gate : {-1000.0, -110.0, -100.0}) {
      for (const double up : {infinity, -infinity}) {
        const Expected e = expected(gate, up);
        EXPECT_TRUE(std::isnan(e.value) && e.bound == infinity) << epilogue << gate;
        Findings findings(1, 4);
        for (const double got : {infinity, -infinity, std::nan(""), 0.0}) {
          findings.compare(0, 0, got, e.value, e.bound);
        }
        EXPECT_TRUE(findings.passed());
      }
      EXPECT_TRUE(std::isfinite(expected(gate, 1e30).bound));
    }
    EXPECT_EQ(expected(-1, infinity).value, -infinity);
    EXPECT_EQ(expected(-1, infinity).bound, 0);
  }
}

// A row of equal elements: all squares may be rounded in the same direction. A thread of 64 lanes
// that adds 16384 / 64 / 8 sums of 8 squares rounds a sum 40 times.
TEST(GemmErrorModel, HoldsNormsOfEqualElements) {
  const GemmErrorModel model(
      gemm_problem(1, 1, 16384, DType::f32, DType::f32, {{"prologue", "rmsnorm"}}));
  const Expected e = model.expect({1, 0, 0, 0, 0, 1, 0});
  EXPECT_GE(e.bound, 40 * 0x1p-24);
  EXPECT_LE(e.bound, 250 * 0x1p-24);
}

// A kernel that limits an exponential to e^20 gives -30 / e^20 = -6e-8 for silu(-30).
TEST(GemmErrorModel, HoldsVanishingActivationsToWhatIsLeftOfThem) {
  const GemmErrorModel model(
      gemm_problem(64, 64, 64, DType::f32, DType::f32, {{"epilogue", "silu"}}));
  const Expected e = model.expect({-30, 30, 0, 0, 0});
  EXPECT_NEAR(e.value, -30 * std::exp(-30.0), 1e-15);
  EXPECT_LT(e.bound, 1e-14);
  const Expected turning = model.expect({-1.2784645, 30, 0, 0, 0});  // silu has its minimum there
  EXPECT_GE(turning.bound, 1.1 * model.product_factor() * 30);
}

}  // namespace
}  // namespace greta::test::gemm_reference_test
