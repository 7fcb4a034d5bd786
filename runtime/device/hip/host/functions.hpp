#pragma once

#include "runtime/device/hip/functions.hpp"

namespace greta::device::hip::host {

/// HIP's functions by means of the CPU. Memory is the process's own.
Functions functions();

/// Devices 0 … device_count - 1, all on the same processor.
constexpr int device_count = 4;

constexpr unsigned max_block_threads = 1024;

/// The architecture that a device imitates: "sm_80".
const char* imitated(int device);
/// Its number in kernels, the macro GRETA_HOST: 80, 942, 1100 or 1201.
int imitated_number(int device);

}  // namespace greta::device::hip::host
