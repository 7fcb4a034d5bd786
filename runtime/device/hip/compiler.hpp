#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/kernel_source.hpp"
#include "runtime/device/result.hpp"

namespace greta::device::hip {

/// What a compiler made of a kernel's source.
struct CodeObject {
  std::vector<std::byte> binary;  ///< AMD: an ELF code object; NVIDIA: a cubin
  std::string log;                ///< warnings; empty where it had nothing to say
};

/// A compiler of HIP kernels, or several to choose from. Compilers run as processes of their own,
/// with a deadline: some of them end the process that calls them. Thread-safe.
class Compiler {
 public:
  virtual ~Compiler() = default;

  /// Names and versions of all that may be used, and of the options they are given, for the
  /// kernels' content keys: "hiprtc 5.2.21153, clang 22.1.8 (1~deb12u1), options 1".
  virtual const std::string& version() const = 0;

  /// The one that compiles for an architecture ("gfx942", "sm_90"): the first that can compile an
  /// empty kernel for it, which is asked once. Fails with `unavailable`, and what each of them
  /// said.
  virtual Result<std::string> used_for(const std::string& architecture) = 0;

  /// Compiles for an architecture. Fails with `compile`: the first error is the message, and
  /// everything the compiler said is the log; with `timeout` where it was too slow; and as
  /// used_for() does.
  virtual Result<CodeObject> compile(const KernelSource& source,
                                     const std::string& architecture) = 0;
};

/// Compilers fail to be made with `unavailable` where there is no such compiler on this machine. Of
/// the options they use `compiler`, `compile_helper` and `compile_deadline`.

/// hiprtc for the architectures it knows, and clang for others. An `OpenOptions::compiler` is used
/// alone.
Result<std::unique_ptr<Compiler>> create_amd_compiler(const OpenOptions& options);
/// NVRTC 13 or 12.
Result<std::unique_ptr<Compiler>> create_nvidia_compiler(const OpenOptions& options);
/// clang alone, for AMD: OpenOptions::compiler, else the newest on PATH that knows an architecture.
Result<std::unique_ptr<Compiler>> create_clang_compiler(const OpenOptions& options);

}  // namespace greta::device::hip
