#pragma once

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/platform.hpp"

namespace greta::device::hip {

/// Creates the backend "hip": AMD's devices, followed by NVIDIA's. It looks for libraries on first
/// use.
std::unique_ptr<Backend> create_backend(const Libraries& libraries = {});
/// Creates the backend "hip-host": devices that GRETA imitates on the CPU.
std::unique_ptr<Backend> create_host_backend();

}  // namespace greta::device::hip
