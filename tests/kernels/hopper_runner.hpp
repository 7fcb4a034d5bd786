#pragma once

#include <gtest/gtest.h>

#include "kernels/sampling/candidates.hpp"
#include "runtime/device/hardware/architectures.hpp"
#include "tests/catalog.hpp"
#include "tests/kernels/plan_runner.hpp"

/// Kernels for sm_90 on the sm_80 that hip-host emulates, which has tensor copies and warpgroup
/// products beside it.
namespace greta::test {

/// Returns a Hopper of so few compute units that few tiles are more than run at once.
inline DeviceInfo hopper_of(std::uint32_t units) {
  DeviceInfo hopper = architecture_info("sm_90").value();
  hopper.compute_units = units;
  hopper.shared_memory_bytes = device("hip-host:0").info().shared_memory_bytes;
  return hopper;
}

/// Runs a kernel for NVRTC on hip-host, and expects intact guard zones and right results.
inline void expect_right_of_hopper(const Problem& problem, const Config& config,
                                   const std::vector<HostTensor>& inputs, std::uint64_t seed = 1,
                                   std::uint32_t units = 2) {
  SCOPED_TRACE(problem.key() + " | " + config.text());
  const Operation& operation = built_in(problem.op);
  auto plan = operation.plan(problem, hopper_of(units), config);
  ASSERT_TRUE(plan) << plan.failure().message;
  for (KernelSource& source : plan->sources) source.options.clear();
  const auto done = run_plan(device("hip-host:0"), *plan, operation.tensors(problem), inputs);
  ASSERT_TRUE(done) << done.failure().message << '\n' << done.failure().log;
  EXPECT_EQ(done->overrun, "");
  const Verdict verdict = operation.reference(problem, inputs, seed)->check(done->outputs);
  EXPECT_TRUE(verdict.passed) << verdict.detail;
}

/// Does so on the operation's own inputs.
inline void expect_right_of_hopper(const Problem& problem, const Config& config,
                                   kernels::InputStyle style, std::uint64_t seed,
                                   std::uint32_t units = 2) {
  expect_right_of_hopper(problem, config, built_in(problem.op).inputs(problem, seed, style), seed,
                         units);
}

}  // namespace greta::test
