#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "kernels/model/weight_panels.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

/// Products of weights in panels beside those of the same weights in rows.
namespace greta::test {

/// Runs a configuration that `planned` has kernels for, on `on`; expects right outputs and returns
/// the bytes of the first one.
inline std::vector<std::byte> right_bytes(const Operation& operation, const Problem& problem,
                                          const DeviceInfo& planned, const Config& config,
                                          const std::vector<HostTensor>& inputs, Device& on) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  auto plan = operation.plan(problem, planned, config);
  if (!plan) {
    ADD_FAILURE() << plan.failure().message;
    return {};
  }
  for (KernelSource& source : plan->sources) source.options.clear();  // those of NVRTC
  const auto done = run_plan(on, *plan, operation.tensors(problem), inputs);
  if (!done) {
    ADD_FAILURE() << done.failure().message << '\n' << done.failure().log;
    return {};
  }
  EXPECT_EQ(done->overrun, "");
  const Verdict verdict = operation.reference(problem, inputs, 1)->check(done->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
  return done->outputs.at(0).data;
}

/// Returns the problem with weights in panels.
inline Problem in_panels(const Problem& rows) {
  Problem panels = rows;
  panels.attributes.emplace_back("packing", "panels");
  return catalog().read(panels.key()).value();
}

/// Expects right and equal results of rows and of panels.
inline void expect_equal_of_panels(const Operation& operation, const Problem& rows,
                                   const DeviceInfo& planned, const Config& config, Device& on,
                                   kernels::InputStyle style, std::uint64_t seed) {
  std::vector<HostTensor> inputs = operation.inputs(rows, seed, style);
  const auto of_rows = right_bytes(operation, rows, planned, config, inputs, on);
  for (HostTensor& tensor : inputs) {
    const std::string& name = tensor.spec.name;
    if (name != "B" && name != "gate_up" && name != "down") continue;
    auto panels = kernels::panels_of_rows(tensor.data, tensor.spec.cols);
    EXPECT_NE(panels, tensor.data);
    tensor.data = std::move(panels);
  }
  const Problem panels = in_panels(rows);
  EXPECT_EQ(right_bytes(operation, panels, planned, config, inputs, on), of_rows)
      << panels.key() << " | " << config.text();
}

}  // namespace greta::test
