// Protects: every distribution of rows over groups is computed, whatever the height of tiles, and
// rows of no group are not written.

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "kernels/sampling/candidates.hpp"
#include "kernels/templates/grouped_gemm/rows.hpp"
#include "kernels/templates/grouped_gemm/shape.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test::grouped_gemm_test {
namespace {

using Rows = std::vector<std::int64_t>;  ///< of each group

const Operation& operation() {
  return built_in("grouped_gemm");
}

Problem problem_of(bool masked, std::int64_t groups, std::int64_t m, const char* layout = "nt",
                   DType type = DType::f32) {
  Problem problem{"grouped_gemm", type, DType::f32, {}, {}};
  if (masked) problem.attributes.emplace_back("form", "masked");
  if (std::string(layout) != "nt") problem.attributes.emplace_back("layout", layout);
  problem.dims = {{"groups", groups}, {"m", m}, {"n", 36}, {"k", 24}};
  return problem;
}

/// Returns plain inputs with these rows of the groups; those of contiguous groups are added up.
std::vector<HostTensor> inputs_of(const Problem& problem, const Rows& rows) {
  std::vector<HostTensor> inputs = operation().inputs(problem, 1);
  HostTensor& numbers = inputs.at(2);
  std::int64_t end = 0;
  for (std::size_t group = 0; group < rows.size(); ++group) {
    end = numbers.spec.name == "ends" ? end + rows[group] : rows[group];
    store_element(DType::i32, numbers.data.data(), group, static_cast<double>(end));
  }
  return inputs;
}

/// Returns the elements of rows of groups, by three plain loops, and NaN elsewhere.
std::vector<double> plain_product(const Problem& problem, const std::vector<HostTensor>& inputs,
                                  const Rows& rows) {
  const HostTensor &a = inputs.at(0), &b = inputs.at(1);
  const std::int64_t n = problem.dim("n"), k = problem.dim("k"), m = problem.dim("m");
  const bool masked = problem.attribute("form", "contiguous") == "masked";
  const bool transposed = problem.attribute("layout", "nt") == "nt";
  std::vector<double> c(static_cast<std::size_t>(a.spec.rows * n), std::nan(""));
  std::int64_t start = 0;
  for (std::size_t g = 0; g < rows.size(); ++g) {
    const auto group = static_cast<std::int64_t>(g);
    if (masked) start = group * m;
    for (std::int64_t row = start; row < start + rows[g]; ++row) {
      for (std::int64_t col = 0; col < n; ++col) {
        double sum = 0;
        for (std::int64_t l = 0; l < k; ++l) {
          const std::int64_t at = group * n * k + (transposed ? col * k + l : l * n + col);
          sum += a.at(static_cast<std::size_t>(row * k + l)) * b.at(static_cast<std::size_t>(at));
        }
        c[static_cast<std::size_t>(row * n + col)] = sum;
      }
    }
    start += rows[g];
  }
  return c;
}

/// Returns a problem with gates, of `n` columns of C.
Problem gated_problem(bool masked, const char* epilogue, DType type, std::int64_t n) {
  Problem problem = problem_of(masked, 4, masked ? 20 : 70, "nt", type);
  problem.attributes.emplace_back("epilogue", epilogue);
  problem.extent("n") = n;
  return problem;
}

/// Returns act(gate) * up of the product with all columns, in f64.
std::vector<double> gated_product(const Problem& problem, const std::vector<HostTensor>& inputs,
                                  const Rows& rows) {
  Problem plain = problem;
  const std::int64_t n = problem.dim("n");
  plain.extent("n") = 2 * n;
  const auto products = plain_product(plain, inputs, rows);
  std::vector<double> c(products.size() / 2);
  for (std::size_t i = 0; i < c.size(); ++i) {
    const std::size_t row = i / static_cast<std::size_t>(n), col = i % static_cast<std::size_t>(n);
    const double gate = products[row * static_cast<std::size_t>(2 * n) + col];
    const double up = products[(row * 2 + 1) * static_cast<std::size_t>(n) + col];
    const double t = problem.attribute("epilogue", "") == "swiglu"
                         ? gate
                         : std::sqrt(8 / std::acos(-1)) * (gate + 0.044715 * gate * gate * gate);
    c[i] = gate / (1 + std::exp(-t)) * up;
  }
  return c;
}

std::vector<Rows> distributions(std::int64_t groups, std::int64_t m, bool masked) {
  const auto count = static_cast<std::size_t>(groups);
  Rows first(count), last(count), ones(count, 1), none(count), mixed(count);
  first.front() = last.back() = m;
  for (std::size_t g = 0; g < count; ++g) {
    mixed[g] = g % 3 == 1 ? 0 : (masked ? static_cast<std::int64_t>(g * 7) % (m + 1) : m / groups);
  }
  return {first, last, ones, none, mixed};
}

class GroupedGemm : public ::testing::TestWithParam<std::string> {};

TEST_P(GroupedGemm, ComputesAnyDistributionOfRows) {
  Device& device = test::device(GetParam());
  for (const bool masked : {false, true}) {
    const std::int64_t groups = 9, m = masked ? 40 : 150;
    const Problem problem = problem_of(masked, groups, m, masked ? "nn" : "nt");
    for (const char* variant : {"naive", "tiled"}) {
      const auto candidates =
          kernels::sample_candidates(operation(), problem, device.info(), variant, 1, 5);
      ASSERT_FALSE(candidates.empty());
      const kernels::Candidate& candidate = candidates.front();
      const auto plan = operation().plan(problem, device.info(), candidate.config).value();
      for (const Rows& rows : distributions(groups, m, masked)) {
        const auto inputs = inputs_of(problem, rows);
        const auto run = run_plan(device, plan, operation().tensors(problem), inputs);
        ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
        EXPECT_EQ(run->overrun, "");
        const auto expected = plain_product(problem, inputs, rows);
        for (std::size_t i = 0; i < expected.size(); ++i) {
          const double got = run->outputs.front().at(i);
          ASSERT_EQ(std::isnan(got), std::isnan(expected[i])) << candidate.config.text() << i;
          if (std::isnan(got)) continue;
          ASSERT_NEAR(got, expected[i], 1e-5) << i;
        }
      }
    }
  }
}

// A group's gates are followed by its ups, and after these by the next group's gates.
TEST_P(GroupedGemm, ComputesGatesOfEachGroup) {
  Device& device = test::device(GetParam());
  for (const bool masked : {false, true}) {
    const Problem problem = gated_problem(masked, masked ? "geglu" : "swiglu", DType::f32, 36);
    const Rows rows = distributions(4, masked ? 20 : 70, masked).back();
    const auto inputs = inputs_of(problem, rows);
    const auto expected = gated_product(problem, inputs, rows);
    for (const char* variant : {"naive", "tiled"}) {
      const auto candidates =
          kernels::sample_candidates(operation(), problem, device.info(), variant, 1, 5);
      ASSERT_FALSE(candidates.empty());
      const auto plan = operation().plan(problem, device.info(), candidates.front().config).value();
      const auto run = run_plan(device, plan, operation().tensors(problem), inputs);
      ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
      EXPECT_EQ(run->overrun, "");
      for (std::size_t i = 0; i < expected.size(); ++i) {
        const double got = run->outputs.front().at(i);
        ASSERT_EQ(std::isnan(got), std::isnan(expected[i])) << variant << ' ' << i;
        if (std::isnan(got)) continue;
        ASSERT_NEAR(got, expected[i], 1e-5) << variant << ' ' << i;
      }
    }
  }
}

class GroupedGemmOfMatrixCores : public GroupedGemm {};

// In both of their epilogues' widths.
TEST_P(GroupedGemmOfMatrixCores, ComputesGates) {
  Device& device = test::device(GetParam());
  for (const std::int64_t n : {64, 37}) {
    const Problem problem = gated_problem(false, "swiglu", DType::bf16, n);
    const auto candidates =
        kernels::sample_candidates(operation(), problem, device.info(), "matrix", 1, 5);
    ASSERT_FALSE(candidates.empty());
    const Config& config = candidates.front().config;
    test::expect_right(operation(), problem, operation().plan(problem, device.info(), config),
                       config.text(), 5, device);
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemm, ::testing::ValuesIn(test::usable_devices()),
                         [](const auto& instance) { return test::device_name(instance.param); });
INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemmOfMatrixCores,
                         ::testing::ValuesIn(test::devices_that_multiply(DType::bf16)),
                         [](const auto& instance) { return test::device_name(instance.param); });

/// Results that the reference accepts.
HostTensor right_result(const Problem& problem, const std::vector<HostTensor>& inputs,
                        const Rows& rows) {
  const TensorSpec spec = operation().tensors(problem).back();
  HostTensor c{spec, std::vector<std::byte>(spec.bytes())};
  const auto values = plain_product(problem, inputs, rows);
  for (std::size_t i = 0; i < values.size(); ++i) {
    store_element(spec.dtype, c.data.data(), i, values[i]);
  }
  return c;
}

TEST(GroupedGemmReference, FindsWrittenRowsOfNoGroup) {
  for (const bool masked : {false, true}) {
    const Problem problem = problem_of(masked, 3, 10);
    const Rows rows{2, 0, 5};
    const auto inputs = inputs_of(problem, rows);
    const auto reference = operation().reference(problem, inputs, 1);
    const HostTensor right = right_result(problem, inputs, rows);
    EXPECT_TRUE(reference->check({right}).passed) << reference->check({right}).detail;
    const std::int64_t free = masked ? 10 + 3 : 8;  // a row of the second group, or past the last
    HostTensor wrong = right;
    store_element(DType::f32, wrong.data.data(), static_cast<std::size_t>(free * 36 + 5), 0.0);
    const Verdict verdict = reference->check({wrong});
    EXPECT_FALSE(verdict.passed);
    EXPECT_NE(verdict.detail.find("row of no group"), std::string::npos) << verdict.detail;
  }
}

TEST(GroupedGemmReference, FindsRowsOfAnotherGroup) {
  const Problem problem = problem_of(false, 3, 10);
  const auto inputs = inputs_of(problem, {2, 3, 5});
  const HostTensor shifted = right_result(problem, inputs, {3, 2, 5});
  const Verdict verdict = operation().reference(problem, inputs, 1)->check({shifted});
  EXPECT_FALSE(verdict.passed);
  EXPECT_NE(verdict.detail.find("group 1"), std::string::npos) << verdict.detail;
}

TEST(GroupedGemmReference, TakesNumbersOutOfRangeAsTheNearestPossible) {
  const Problem problem = problem_of(false, 3, 10);
  auto inputs = inputs_of(problem, {0, 4, 6});
  store_element(DType::i32, inputs[2].data.data(), 0, -7);
  store_element(DType::i32, inputs[2].data.data(), 2, 2147483647);
  const HostTensor right = right_result(problem, inputs, {0, 4, 6});
  EXPECT_TRUE(operation().reference(problem, inputs, 1)->check({right}).passed);
}

TEST(GroupedGemmReference, TakesTheFirstHalfOfAGroupsLinesAsGates) {
  const Problem problem = gated_problem(false, "swiglu", DType::f32, 36);
  const Rows rows{10, 0, 5, 55};
  const auto inputs = inputs_of(problem, rows);
  const auto reference = operation().reference(problem, inputs, 1);
  const TensorSpec spec = operation().tensors(problem).back();
  HostTensor c{spec, std::vector<std::byte>(spec.bytes())};
  const auto values = gated_product(problem, inputs, rows);
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(spec.dtype, c.data.data(), i, values[i]);
  EXPECT_TRUE(reference->check({c}).passed) << reference->check({c}).detail;
  auto exchanged = inputs;  // gates and ups of the first group
  const auto half = static_cast<std::ptrdiff_t>(36 * 24 * 4);
  std::swap_ranges(exchanged[1].data.begin(), exchanged[1].data.begin() + half,
                   exchanged[1].data.begin() + half);
  const Verdict verdict = operation().reference(problem, exchanged, 1)->check({c});
  EXPECT_FALSE(verdict.passed);
  EXPECT_NE(verdict.detail.find("group 0"), std::string::npos) << verdict.detail;
}

TEST(GroupedGemmProblem, GatesNeedLinesOfBAlongK) {
  Problem problem = problem_of(false, 3, 10, "nn");
  problem.attributes.emplace_back("epilogue", "swiglu");
  EXPECT_FALSE(operation().check(problem));
}

TEST(GroupedGemmRows, AreAllRowsOfContiguousGroupsAndFitMaskedOnes) {
  using kernels::grouped_gemm::Routing;
  for (const std::int64_t groups : {1, 2, 7, 64, 300}) {
    for (const std::int64_t m : {1, 5, 100, 32768}) {
      for (const Routing routing : {Routing::balanced, Routing::skewed}) {
        const auto contiguous = kernels::grouped_gemm::rows_of_groups(
            kernels::grouped_gemm::shape_of(problem_of(false, groups, m)), routing);
        EXPECT_EQ(std::accumulate(contiguous.begin(), contiguous.end(), std::int64_t{0}), m);
        const auto masked = kernels::grouped_gemm::rows_of_groups(
            kernels::grouped_gemm::shape_of(problem_of(true, groups, m)), routing);
        for (const auto& rows : {contiguous, masked}) {
          ASSERT_EQ(std::ssize(rows), groups);
          for (const std::int64_t count : rows) {
            EXPECT_GE(count, 0);
            EXPECT_LE(count, m);
          }
        }
      }
    }
  }
}

TEST(GroupedGemmRows, OfSkewedGroupsDifferMore) {
  using kernels::grouped_gemm::Routing;
  const auto shape = kernels::grouped_gemm::shape_of(problem_of(false, 64, 32768));
  const auto largest = [&](Routing routing) {
    const auto rows = kernels::grouped_gemm::rows_of_groups(shape, routing);
    return *std::max_element(rows.begin(), rows.end());
  };
  EXPECT_LE(largest(Routing::balanced), 32768 / 64 * 5 / 3);
  EXPECT_GE(largest(Routing::skewed), 32768 / 64 * 5);
}

TEST(GroupedGemmProblem, RowsAreCountedIn32Bits) {
  Problem problem = problem_of(true, 1 << 16, 1 << 15);
  EXPECT_FALSE(operation().check(problem));
  problem = problem_of(false, 1 << 23, 10);
  EXPECT_FALSE(operation().check(problem));
  problem = problem_of(false, 1 << 20, 10);
  EXPECT_TRUE(operation().check(problem));
}

}  // namespace
}  // namespace greta::test::grouped_gemm_test
