#pragma once

#include "runtime/device/device_info.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::tuner {

// Kernels that move memory in chunks of copy_group_bytes, with workgroups of ceiling_threads
// threads. Arguments: an address, u32 number of chunks, and another u32.

/// Writes all chunks. The last argument is the number of workgroups, which may be smaller.
KernelSource write_kernel(const DeviceInfo& device);
/// Computes a[i] = b[i] + s c[i] for floats: three arrays of that number of chunks, which follow
/// each other. The last argument is the number of workgroups, which may be smaller.
KernelSource triad_kernel(const DeviceInfo& device);
/// Reads chunks again and again, each workgroup from another one on: the last argument is the
/// number of chunks that each reads.
KernelSource walk_kernel(const DeviceInfo& device);

}  // namespace greta::tuner
