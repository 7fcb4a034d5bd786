#pragma once

#include <vector>

#include "kernels/model/operation.hpp"
#include "runtime/device/device.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// Runs a plan on a device of hip-host twice, each time as launches that may overlap the copies of
/// its inputs, and returns the outputs of both runs. A kernel that reads an operand before it
/// waits, other than Launch::early_operands, or writes one, has other results, if it does so before
/// the first thread of any block waits (docs/hip-host.md).
Result<std::vector<std::vector<HostTensor>>> run_overlapped(Device& device, const LaunchPlan& plan,
                                                            const std::vector<TensorSpec>& tensors,
                                                            const std::vector<HostTensor>& inputs);

}  // namespace greta::test
