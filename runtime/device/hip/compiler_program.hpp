#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/hip/compiler.hpp"

namespace greta::device::hip {

/// A compiler program. It reads a kernel's text from standard input, writes a code object to
/// standard output and writes its log to standard error.
struct CompilerProgram {
  std::string version;               ///< "clang 22.1.8 (1~deb12u1)"
  std::vector<std::string> command;  ///< the architecture and the kernel's options are appended
  std::string architecture_option;   ///< "--offload-arch="
  int refusal = 1;                   ///< exit code for a rejected source
  std::string instantiate_option{};  ///< for an instantiation; empty: a variable refers to it
};

/// Must be changed whenever the options that are passed to a program, other than the kernel's own,
/// change. It is part of the kernels' content keys.
constexpr std::string_view compiler_options = "options 1";

/// Says whether a kernel specifies an architecture in its own options, as one does that needs
/// features of "sm_90a".
bool names_architecture(const CompilerProgram& program, const KernelSource& source);

/// Compiles with this program. Fails as Compiler::compile() does. The message contains the
/// program's version if the program itself failed.
Result<CodeObject> compile_with(const CompilerProgram& program, const KernelSource& source,
                                const std::string& architecture, Deadline deadline);

/// The range of LLVM versions to look for: clang-15 … clang-40. From 15 on, clang writes version 5
/// of code objects. The newest versions do not exist yet, but looking for a missing one costs
/// little.
constexpr int oldest_clang = 15;
constexpr int newest_clang = 40;

/// Returns a clang as a compiler program for AMD GPUs.
Result<CompilerProgram> clang_program(const std::string& name, Deadline deadline);
/// Returns every clang on PATH from version 15 on, newest first.
std::vector<CompilerProgram> clangs_on_path(Deadline deadline);

/// Returns greta-compile-helper as a compiler program for the library "hiprtc" or "nvrtc".
Result<CompilerProgram> library_program(const std::string& library, const OpenOptions& options);

}  // namespace greta::device::hip
