#pragma once

#include <memory>
#include <span>
#include <string>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::hip::host {

/// Builds kernels with OpenOptions::compiler, or the first of c++, g++ and clang++ on PATH, as
/// libraries of this project's own making. With OpenOptions::sanitize, and always in a process that
/// has AddressSanitizer's runtime, under AddressSanitizer and UndefinedBehaviorSanitizer. Fails
/// with `unavailable` where there is no compiler, or the runtime that was asked for is not in the
/// process.
Result<std::unique_ptr<Compiler>> create_compiler(const OpenOptions& options);

/// The text that is handed to the C++ compiler for a kernel: the language, then the kernel.
std::string compilation_text(const KernelSource& source);

/// What the code object of a kernel says about it.
Result<KernelStatistics> read_statistics(std::span<const std::byte> library,
                                         const std::string& entry);

}  // namespace greta::hip::host
