#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip {

/// The result of compiling a kernel's source.
struct CodeObject {
  std::vector<std::byte> binary;  ///< AMD: an ELF code object; NVIDIA: a cubin
  std::string log;                ///< warnings, if any
};

/// A compiler of HIP kernels, or several to choose from. Compilers run as separate processes with a
/// deadline, because some of them end the process that calls them. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// Returns the names and versions of all compilers that may be used, and the version of the
  /// options that they get, for the kernels' content keys: "hiprtc 5.2.21153, clang 22.1.8
  /// (1~deb12u1), options 1".
  virtual const std::string& version() const = 0;

  /// Returns the compiler for an architecture ("gfx942", "sm_90"): the first that can compile an
  /// empty kernel for it, which is tried once, or has compiled another kernel for it. Fails with
  /// `unavailable` and the message of each compiler.
  virtual Result<std::string> used_for(const std::string& architecture) = 0;

  /// Compiles for an architecture. Fails with `compile`, where the message is the first error and
  /// the log is the compiler's full output, with `timeout` if the deadline has passed, and as
  /// used_for() does.
  virtual Result<CodeObject> compile(const KernelSource& source,
                                     const std::string& architecture) = 0;
};

/// Functions that create compilers. They fail with `unavailable` if this machine has no such
/// compiler. They use the options `compiler`, `compile_helper` and `compile_deadline`.

/// Creates a compiler that uses hiprtc for the architectures that it supports, and clang for
/// others. An `OpenOptions::compiler` is used alone.
Result<std::unique_ptr<Compiler>> create_amd_compiler(const OpenOptions& options);
/// Creates a compiler that uses NVRTC 13 or 12.
Result<std::unique_ptr<Compiler>> create_nvidia_compiler(const OpenOptions& options);
/// Creates a compiler for AMD GPUs that uses only clang: OpenOptions::compiler, otherwise the
/// newest on PATH that supports an architecture.
Result<std::unique_ptr<Compiler>> create_clang_compiler(const OpenOptions& options);

}  // namespace greta::device::hip
