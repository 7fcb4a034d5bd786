#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/backend.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Returns the ids of devices of this machine that can execute kernels: real ones and emulated
/// ones.
std::vector<std::string> usable_devices();
/// Returns the ids of those of them that suit a test.
std::vector<std::string> devices_that(const std::function<bool(const DeviceInfo&)>& suit);
/// Returns the ids of those of them with matrix operations on a type.
std::vector<std::string> devices_that_multiply(DType type);
/// Returns "vulkan_0": an id as part of a test's name.
std::string device_name(std::string id);
/// Returns a device, opened once for the test program; "auto" is the best one. Throws Error if
/// there is none.
Device& device(const std::string& id = "auto");
/// Closes it, so that device() opens it again after a kernel has lost it.
void forget_device(const std::string& id);

/// The result of running a plan.
struct PlanRun {
  std::vector<HostTensor> outputs;  ///< tensors whose role is not input, in order
  std::string overrun;              ///< the guard zone that was written; empty if none
  std::string changed;              ///< the output that a repetition changed; empty if none
  double microseconds = 0;          ///< device time of the last repetition
};

/// Returns random data for every tensor that a problem reads, in order.
std::vector<HostTensor> random_inputs(const std::vector<TensorSpec>& tensors, std::uint64_t seed);

/// Runs a plan on new operands with guard zones, with outputs and workspace filled with NaN.
/// `inputs` are the tensors that are read, in order. With `repetitions` > 1 the plan runs
/// repeatedly on the same inputs, and the outputs are those of the last run.
Result<PlanRun> run_plan(Device& device, const LaunchPlan& plan,
                         const std::vector<TensorSpec>& tensors,
                         const std::vector<HostTensor>& inputs, int repetitions = 1);

/// Runs a plan, called `what` in messages, on random inputs. Expects intact guard zones and results
/// that the template's reference accepts.
void expect_right(const Operation& operation, const Problem& problem,
                  const Result<LaunchPlan>& plan, const std::string& what, std::uint64_t seed = 1,
                  Device& on = device());

}  // namespace greta::test
