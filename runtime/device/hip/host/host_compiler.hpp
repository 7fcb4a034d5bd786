#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "runtime/device/backend.hpp"
#include "runtime/device/hip/compiler.hpp"
#include "runtime/device/kernel_source.hpp"

namespace greta::device::hip::host {

/// A C++ compiler on this machine.
struct FoundCompiler {
  std::string program;
  std::string said;  ///< when it was asked for its version
};
/// The given one, or the first of c++, g++ and clang++ on PATH. Fails with `unavailable`.
Result<FoundCompiler> find_compiler(const std::filesystem::path& given, Deadline deadline);

/// Builds kernels with OpenOptions::compiler, or what find_compiler() finds, as libraries that the
/// executor runs. With OpenOptions::sanitize, and always in a process that
/// has AddressSanitizer's runtime, under AddressSanitizer and UndefinedBehaviorSanitizer. Fails
/// with `unavailable` where there is no compiler, or the runtime that was asked for is not in the
/// process.
Result<std::unique_ptr<Compiler>> create_compiler(const OpenOptions& options);

/// The text that is handed to the C++ compiler for a kernel: the language, then the kernel.
std::string compilation_text(const KernelSource& source);

/// What the code object of a kernel says about it.
Result<KernelStatistics> read_statistics(std::span<const std::byte> library,
                                         const std::string& entry);

}  // namespace greta::device::hip::host
