#pragma once

#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip::host {

/// Returns an implementation of HIP's functions on the CPU. It uses the process's own memory.
Functions functions();

/// Devices 0 … device_count - 1 all run on the same processor.
constexpr int device_count = 5;

constexpr unsigned max_block_threads = 1024;
constexpr unsigned max_cluster_blocks = 16;

/// Returns the architecture that a device imitates, e.g. "sm_80".
const char* imitated(int device);
/// Returns the number of its instructions in kernels, the macro GRETA_HOST: 80, 942, 1100 or 1201.
/// sm_80 and sm_90 share those of 80.
int imitated_number(int device);

}  // namespace greta::device::hip::host
