#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::device::hip::host {

/// What the symbols of a kernel's library say.
struct ElfSummary {
  std::uint32_t shared_bytes = 0;      ///< of its __shared__ variables
  std::uint32_t code_bytes = 0;        ///< of functions
  std::vector<std::string> variables;  ///< what else kernels could write to, as the linker names it
  bool sanitized = false;              ///< needs the runtime of AddressSanitizer
};

/// Whether this is the start of a shared library for this machine.
bool is_library(const void* image);
/// Its size. For a library.
std::size_t library_bytes(const void* image);
/// For a library.
ElfSummary summarise(std::span<const std::byte> library);

}  // namespace greta::device::hip::host
