#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/device.hpp"

namespace greta::device::hip {

/// What a cubin, NVIDIA's ELF file of compiled kernels, says about a kernel of sm_70 or newer,
/// without a driver: registers and stack of a thread, static shared memory, bytes of code, and the
/// instructions of `mma.sync` in it, which are counted by their opcodes. Registers that were
/// spilled lie on the stack, which is `scratch_bytes`; how many they are it does not say. Fails
/// with `invalid_argument` for anything but a cubin that holds the kernel; any bytes may be given.
///
/// Source: NVIDIA names the parts of the format ("CUDA Binary Utilities", and readelf shows the
/// sections) but does not describe it. Numbers of attributes (EIATTR_…) are those that `cuobjdump
/// -elf` prints, opcodes those that nvdisasm does; both were held against what `ptxas -v` says of
/// the same kernels, with CUDA 13.0 for sm_80, sm_90 and sm_100.
Result<KernelStatistics> read_cubin_statistics(std::span<const std::byte> cubin,
                                               const std::string& entry);

}  // namespace greta::device::hip
