#pragma once

#include <memory>

#include "runtime/device/device_info.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "tests/layers.hpp"

namespace greta::test {

/// The compiler of HIP kernels for a GPU that is not there: clang for architectures that no
/// distribution's hiprtc is young enough for, though some would try; for NVIDIA NVRTC.
std::unique_ptr<hip::Compiler> compiler_for(const DeviceInfo& device);

/// What the kernel that `binary` was compiled from uses.
KernelStatistics read_statistics(const DeviceInfo& device, const KernelSource& source,
                                 const std::vector<std::byte>& binary);

}  // namespace greta::test
