#pragma once

#include <memory>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/platform.hpp"

namespace greta::device::hip {

/// The backend "hip": AMD's devices, then NVIDIA's. It looks for libraries when it is first asked.
std::unique_ptr<Backend> create_backend(const Libraries& libraries = {});
/// The backend "hip-host": devices that this project imitates on the CPU.
std::unique_ptr<Backend> create_host_backend();

}  // namespace greta::device::hip
