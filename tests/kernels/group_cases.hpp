#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "kernels/sampling/candidates.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

/// Products of five groups of rows, in every distribution of these.
namespace greta::test {

using GroupRows = std::vector<std::int64_t>;  ///< of each group

inline constexpr std::int64_t rows_of_masked = 24, rows_of_contiguous = 60;

/// Returns the dimensions of a problem with groups.
inline std::vector<std::pair<std::string, std::int64_t>> dims_of_groups(bool masked, std::int64_t n,
                                                                        std::int64_t k) {
  return {{"groups", 5}, {"m", masked ? rows_of_masked : rows_of_contiguous}, {"n", n}, {"k", k}};
}

/// Sets the rows of groups in inputs, whose last operand has them; those of contiguous groups are
/// added up.
inline void set_rows(std::vector<HostTensor>& inputs, const GroupRows& rows) {
  HostTensor& numbers = inputs.back();
  std::int64_t end = 0;
  for (std::size_t group = 0; group < rows.size(); ++group) {
    end = numbers.spec.name == "ends" ? end + rows[group] : rows[group];
    store_element(DType::i32, numbers.data.data(), group, static_cast<double>(end));
  }
}

inline std::vector<GroupRows> distributions(bool masked) {
  const std::int64_t m = masked ? rows_of_masked : rows_of_contiguous;
  return {{m, 0, 0, 0, 0}, {0, 0, 0, 0, m}, {1, 1, 1, 1, 1}, {0, 0, 0, 0, 0}, {3, 0, 17, 1, 24}};
}

/// Runs a configuration of each variant with every distribution of rows. Those that the device
/// `lacks` may have none.
inline void expect_right_groups(Device& device, const Operation& operation, const Problem& problem,
                                const std::set<std::string>& lacks = {"matrix", "tma"}) {
  const auto tensors = operation.tensors(problem);
  for (const std::string& variant : operation.variant_names()) {
    const auto candidates =
        kernels::sample_candidates(operation, problem, device.info(), variant, 1, 5);
    ASSERT_TRUE(!candidates.empty() || lacks.contains(variant)) << problem.key() << ' ' << variant;
    for (const kernels::Candidate& candidate : candidates) {
      const auto plan = operation.plan(problem, device.info(), candidate.config).value();
      auto inputs = operation.inputs(problem, 1);
      for (const GroupRows& rows :
           distributions(problem.attribute("form", "contiguous") == "masked")) {
        set_rows(inputs, rows);
        const auto run = run_plan(device, plan, tensors, inputs);
        ASSERT_TRUE(run) << run.failure().message << '\n' << run.failure().log;
        EXPECT_EQ(run->overrun, "");
        const Verdict verdict = operation.reference(problem, inputs, 1)->check(run->outputs);
        EXPECT_TRUE(verdict.passed)
            << problem.key() << ' ' << candidate.config.text() << ": " << verdict.detail;
      }
    }
  }
}

}  // namespace greta::test
