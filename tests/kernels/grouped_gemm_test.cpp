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
    for (const char* layout : {"nt", "nn"}) {
      const std::int64_t groups = 9, m = masked ? 40 : 150;
      const Problem problem = problem_of(masked, groups, m, layout);
      for (const char* variant : {"naive", "tiled"}) {
        const auto candidates =
            kernels::sample_candidates(operation(), problem, device.info(), variant, 2, 5);
        ASSERT_FALSE(candidates.empty());
        for (const kernels::Candidate& candidate : candidates) {
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
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, GroupedGemm, ::testing::ValuesIn(test::usable_devices()),
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
