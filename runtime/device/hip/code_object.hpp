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

/// What a wave finds in its registers when a kernel starts, in this order in scalar registers.
struct KernelDescriptor {
  bool private_segment_buffer = false;  ///< 4 registers
  bool dispatch_pointer = false;        ///< 2 registers
  bool queue_pointer = false;           ///< 2 registers
  bool argument_pointer = false;        ///< 2 registers
  bool dispatch_id = false;             ///< 2 registers
  bool flat_scratch = false;            ///< 2 registers
  bool private_segment_size = false;    ///< 1 register
  std::uint32_t user_registers = 0;     ///< all of the above, and arguments that are loaded ahead
  bool workgroup_id[3] = {};            ///< 1 register each; from gfx12 on in trap registers
};

/// Reads a kernel's descriptor from an AMD code object. Fails as read_statistics() does.
/// Source: LLVM, "User Guide for AMDGPU Backend", "Kernel Descriptor" and "Initial Kernel Execution
/// State".
Result<KernelDescriptor> read_descriptor(std::span<const std::byte> code_object,
                                         const std::string& entry);

/// What a code object says about itself.
struct CodeObjectContents {
  std::string architecture;  ///< "gfx942"
  struct Kernel {
    std::string name;
    std::uint32_t threads = 0;  ///< the largest workgroup that it was compiled for
  };
  std::vector<Kernel> kernels;
};

/// Reads the contents of an AMD code object. Fails with `invalid_argument` for anything else, and
/// for an architecture that hardware/architectures.hpp lacks.
/// Source: LLVM, "User Guide for AMDGPU Backend", "ELF Header" (EF_AMDGPU_MACH) and metadata.
Result<CodeObjectContents> read_contents(std::span<const std::byte> code_object);

/// Returns the size of a kernel's argument block in bytes, from the metadata. Fails as
/// read_statistics() does.
Result<std::uint32_t> read_argument_bytes(std::span<const std::byte> code_object,
                                          const std::string& entry);

}  // namespace greta::device::hip
