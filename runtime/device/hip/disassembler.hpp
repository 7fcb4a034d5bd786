#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "runtime/device/backend.hpp"

namespace greta::device::hip {

/// The instructions of an AMD code object as text, one a line, by llvm-objdump: the one of
/// OpenOptions::compiler, else the newest on PATH that knows the architecture. Fails with
/// `unavailable` where there is none, and with what they said where none could read it.
Result<std::string> disassemble(std::span<const std::byte> code_object, const OpenOptions& options);

}  // namespace greta::device::hip
