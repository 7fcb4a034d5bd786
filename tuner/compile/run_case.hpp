#pragma once

#include <string>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

/// Runs a case's launches on a device, in memory with guard zones, and checks all written data.
/// Returns an empty string on success, else one line on the error. Fails with `invalid_argument` if
/// the case is for another kind of device, or with HIP for another architecture, and otherwise like
/// the device's calls. SPIR-V runs on every Vulkan device with the required features.
Result<std::string> run_case(Device& device, const KernelCase& run, Deadline deadline);

}  // namespace greta::tuner
