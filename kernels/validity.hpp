#pragma once

#include "kernels/model/kernel_template.hpp"

namespace greta::kernels {

/// Whether this build has the operation, the problem is one of it, and the configuration is valid
/// for it on this device. Builds the space of the configuration's own variant alone.
bool is_valid(const Problem& problem, const DeviceInfo& device, const Config& config);

}  // namespace greta::kernels
