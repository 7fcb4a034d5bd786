#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/backend.hpp"

namespace greta::device::hip {

/// Returns the instructions of an AMD code object as text, one per line, from llvm-objdump: the one
/// of OpenOptions::compiler, otherwise the newest on PATH that supports the architecture. Fails
/// with `unavailable`; the log contains the output of each program that could not read the code
/// object.
Result<std::string> disassemble(std::span<const std::byte> code_object, const OpenOptions& options);

}  // namespace greta::device::hip
