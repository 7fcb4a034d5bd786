#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/hip/compiler.hpp"

namespace greta::device::hip {

/// A compiler as a program: it reads a kernel's text from its standard input, and writes a code
/// object to its standard output and its log to standard error.
struct CompilerProgram {
  std::string version;               ///< "clang 22.1.8 (1~deb12u1)"
  std::vector<std::string> command;  ///< the architecture and the kernel's options follow
  std::string architecture_option;   ///< "--offload-arch="
  int refusal = 1;                   ///< its exit code for sources that it does not accept
};

/// To be raised whenever what a program is told besides the kernel's own options changes; part of
/// the kernels' content keys.
constexpr std::string_view compiler_options = "options 1";

/// Compiles with this program. Failures as Compiler::compile()'s, the program's version in the
/// message where it did not do its work.
Result<CodeObject> compile_with(const CompilerProgram& program, const KernelSource& source,
                                const std::string& architecture, Deadline deadline);

/// Versions of LLVM to look for, as clang-15 … clang-40: from 15 on clang writes version 5 of code
/// objects; the newest do not exist yet, and asking for what is missing costs little.
constexpr int oldest_clang = 15;
constexpr int newest_clang = 40;

/// A clang as a compiler for AMD GPUs.
Result<CompilerProgram> clang_program(const std::string& name, Deadline deadline);
/// Every clang on PATH from version 15 on, newest first.
std::vector<CompilerProgram> clangs_on_path(Deadline deadline);

/// "hiprtc" or "nvrtc", in greta-compile-helper.
Result<CompilerProgram> library_program(const std::string& library, const OpenOptions& options);

}  // namespace greta::device::hip
