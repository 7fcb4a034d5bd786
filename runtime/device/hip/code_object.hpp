#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"

namespace greta::device::hip {

/// Returns the code object of one architecture from a compiler's output: the whole output, or the
/// matching part of a clang offload bundle. Fails with `invalid_argument` and a message that
/// describes what the output is instead.
Result<std::vector<std::byte>> extract_code_object(std::vector<std::byte> binary,
                                                   const std::string& architecture);

/// Reads a kernel's statistics from the metadata of an AMD code object. `registers` is the number
/// that a wave allocates per thread: from gfx90a on, where there is one register file, it includes
/// the accumulator registers. Matrix instructions are not counted: see disassemble(). Fails with
/// `invalid_argument` for anything but an AMD code object that contains the kernel. The input may
/// be arbitrary bytes.
/// Source: LLVM, "User Guide for AMDGPU Backend", code object V3 to V6 metadata.
Result<KernelStatistics> read_statistics(std::span<const std::byte> code_object,
                                         const std::string& entry);

/// Returns the size of a kernel's argument block in bytes, from the metadata. Fails as
/// read_statistics() does.
Result<std::uint32_t> read_argument_bytes(std::span<const std::byte> code_object,
                                          const std::string& entry);

}  // namespace greta::device::hip
