#pragma once

#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

namespace greta::test {

/// Runs a configuration on hip-host:4 on its operation's inputs, twice. In its text, which has one
/// source, `old` becomes `text`, unless it is empty. Returns what is wrong, or an empty string.
inline std::string fault_of(const Problem& problem, const std::string& config,
                            std::string_view old = {}, std::string_view text = {}) {
  const Operation& operation = built_in(problem.op);
  Device& on = device("hip-host:4");
  const auto parsed = operation.space(problem, on.info()).parse(config);
  EXPECT_TRUE(parsed) << parsed.failure().message;
  if (!parsed) return {};
  LaunchPlan plan = operation.plan(problem, on.info(), *parsed).value();
  if (!old.empty()) {
    EXPECT_EQ(plan.sources.size(), 1U);
    std::string& source = plan.sources[0].text;
    const std::size_t at = source.find(old);
    EXPECT_NE(at, std::string::npos) << "the template has changed";
    if (at == std::string::npos) return {};
    source.replace(at, old.size(), text);
  }
  const auto inputs = operation.inputs(problem, 1);
  const auto run = run_plan(on, plan, operation.tensors(problem), inputs, 2);
  if (!run) {
    if (run.failure().status == Status::device_lost) forget_device("hip-host:4");
    return run.failure().message;
  }
  if (!run->overrun.empty()) return run->overrun;
  const Verdict verdict = operation.reference(problem, inputs, 1)->check(run->outputs);
  return verdict.passed ? std::string() : verdict.detail;
}

}  // namespace greta::test
