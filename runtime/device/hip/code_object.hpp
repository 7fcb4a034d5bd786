#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta::device::hip {

/// The code object of one architecture in what a compiler wrote: the whole of it, or the part of a
/// clang offload bundle. Fails with `invalid_argument`, saying what it is instead.
Result<std::vector<std::byte>> extract_code_object(std::vector<std::byte> binary,
                                                   const std::string& architecture);

/// What the metadata of an AMD code object says about a kernel. `registers` is what a thread's wave
/// allocates: from gfx90a on, where both files are one, the accumulator registers are part of it.
/// Matrix instructions are not counted: see disassemble(). Fails with `invalid_argument` for
/// anything but an AMD code object that holds the kernel; any bytes may be given.
/// Source: LLVM, "User Guide for AMDGPU Backend", code object V3 to V6 metadata.
Result<KernelStatistics> read_statistics(std::span<const std::byte> code_object,
                                         const std::string& entry);

/// Bytes of the argument block that a kernel takes, as the metadata says. Fails as
/// read_statistics() does.
Result<std::uint32_t> read_argument_bytes(std::span<const std::byte> code_object,
                                          const std::string& entry);

}  // namespace greta::device::hip
