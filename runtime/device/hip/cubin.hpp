#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/device.hpp"

namespace greta::device::hip {

/// Reads a kernel's statistics from a cubin, NVIDIA's ELF file of compiled kernels, without a
/// driver, for sm_70 or newer: registers and stack per thread, static shared memory, size of the
/// code, and the number of matrix instructions, which are counted by opcode. Spilled registers are
/// stored on the stack, whose size is `scratch_bytes`; a cubin does not contain their number. Fails
/// with `invalid_argument` for anything but a cubin that contains the kernel. The input may be
/// arbitrary bytes.
///
/// Source: NVIDIA names the parts of the format ("CUDA Binary Utilities", and readelf shows the
/// sections) but does not describe it. Attribute numbers (EIATTR_…) are those that `cuobjdump -elf`
/// prints, and opcodes are those that nvdisasm prints. Both were compared with the output of `ptxas
/// -v` for the same kernels, with CUDA 13.0 for sm_80, sm_90 and sm_100.
Result<KernelStatistics> read_cubin_statistics(std::span<const std::byte> cubin,
                                               const std::string& entry);

}  // namespace greta::device::hip
