#pragma once

#include <string>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

/// Runs a case's launches on a device, in memory with guard zones, and checks what they wrote.
/// Empty when it passes, else one line on what is wrong. Fails with `invalid_argument` where the
/// case is for another kind of device, or in HIP for another architecture than the device's, else
/// as the device does. SPIR-V may run on any Vulkan device that has what it needs.
Result<std::string> run_case(Device& device, const KernelCase& run, Deadline deadline);

}  // namespace greta::tuner
