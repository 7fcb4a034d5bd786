#pragma once

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/platform.hpp"

namespace greta::hip {

/// The backend "hip": AMD's devices, then NVIDIA's. It looks for libraries when it is first asked.
std::unique_ptr<Backend> create_backend(const Libraries& libraries = {});

}  // namespace greta::hip
