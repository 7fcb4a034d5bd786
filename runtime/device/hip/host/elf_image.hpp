#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

/// A variable of a kernel.
struct ElfVariable {
  std::string name;      ///< linker name
  std::uint64_t at = 0;  ///< address in the library; of shared memory, offset in it
  std::uint64_t bytes = 0;
};

/// A summary of the symbols of a kernel's library.
struct ElfSummary {
  std::uint32_t shared_bytes = 0;      ///< total size of its __shared__ variables
  std::uint32_t code_bytes = 0;        ///< total size of its functions
  std::vector<std::string> variables;  ///< other writable variables, by linker name
  std::vector<ElfVariable> constants;  ///< its __constant__ variables
  std::vector<ElfVariable> shared;     ///< its __shared__ variables and its dynamic shared memory
  bool sanitized = false;              ///< whether it needs AddressSanitizer's runtime
  bool symbolized = false;             ///< whether reports name its lines
};

/// Whether this is the start of a shared library for this machine.
bool is_library(const void* image);
/// Returns the size of a library.
std::size_t library_bytes(const void* image);
/// Returns the summary of a library.
ElfSummary summarise(std::span<const std::byte> library);

}  // namespace greta::device::hip::host
