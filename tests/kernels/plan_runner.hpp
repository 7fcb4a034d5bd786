#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Devices of this machine that can execute, by id: real ones, and those that CPUs imitate.
std::vector<std::string> usable_devices();
/// "vulkan_0": an id as a part of a test's name.
std::string device_name(std::string id);
/// A device, opened once for the test program; "auto" is the best one. Throws Error when there is
/// none.
Device& device(const std::string& id = "auto");

/// What came of running a plan.
struct PlanRun {
  std::vector<HostTensor> outputs;  ///< tensors whose role is not input, in order
  std::string overrun;              ///< which guard zone was written; empty when none was
  std::string changed;              ///< which output a repetition changed; empty when none did
  double microseconds = 0;          ///< device time of the last repetition
};

/// Fresh random data for every tensor that a problem reads, in order.
std::vector<HostTensor> random_inputs(const std::vector<TensorSpec>& tensors, std::uint64_t seed);

/// Runs a plan on fresh operands with guard zones, outputs and workspace filled with NaN.
/// `inputs` are the tensors that are read, in order. With `repetitions` > 1 the plan is run again
/// on the same inputs; outputs are those of the last run.
Result<PlanRun> run_plan(Device& device, const LaunchPlan& plan,
                         const std::vector<TensorSpec>& tensors,
                         const std::vector<HostTensor>& inputs, int repetitions = 1);

/// Runs a plan, called `what` in messages, on fresh inputs, and expects its guard zones to be
/// intact and its results to be right for the template's reference.
void expect_right(const Operation& operation, const Problem& problem,
                  const Result<LaunchPlan>& plan, const std::string& what, std::uint64_t seed = 1,
                  Device& on = device());

}  // namespace greta::test
