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
  std::string said;  ///< output of --version
};
/// Returns the given compiler, or the first of c++, g++ and clang++ on PATH. Fails with
/// `unavailable`.
Result<FoundCompiler> find_compiler(const std::filesystem::path& given, Deadline deadline);

/// Creates a compiler that builds kernels as libraries for the executor, with OpenOptions::compiler
/// or the result of find_compiler(). With OpenOptions::sanitize, and always in a process with
/// AddressSanitizer's runtime, it uses AddressSanitizer and UndefinedBehaviorSanitizer. Fails with
/// `unavailable` if there is no compiler, or if the requested runtime is not in the process.
Result<std::unique_ptr<Compiler>> create_compiler(const OpenOptions& options);

/// Returns what a library must have in common with this process to be loaded: the kind of
/// processor, the checks that are compiled in, and a hash of the language header, "x86-64-v3
/// 1a2b3c4d".
std::string library_interface();

/// Returns the text that is passed to the C++ compiler for a kernel: the language header, then the
/// kernel.
std::string compilation_text(const KernelSource& source);

/// Reads a kernel's statistics from its code object.
Result<KernelStatistics> read_statistics(std::span<const std::byte> library,
                                         const std::string& entry);

}  // namespace greta::device::hip::host
