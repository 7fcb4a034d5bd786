#pragma once

#include <string>
#include <vector>

#include "runtime/device/backend.hpp"
#include "runtime/device/device_info.hpp"

namespace greta::device {

/// Names of the forms of compiled kernels that Device::load() takes. Two devices with a common name
/// run the same binary: "gfx942" (AMD code objects), "sm_90" (NVIDIA cubins), "spirv" (modules that
/// any device with the features of their source runs), "spirv nv" and "spirv khr" (modules with
/// cooperative matrices of that extension), "host-gfx942 x86-64-v3 1a2b3c4d" (libraries of hip-host
/// for a kind of processor and an interface of GRETA).

/// Returns the targets of a device, the most specific first.
std::vector<std::string> binary_targets(const DeviceInfo& device);

/// A kernel in a compiled form.
struct TargetBinary {
  std::string target;
  std::string compiler;  ///< name and version
  std::vector<std::byte> binary;
};

/// Compiles kernels into forms that are loaded elsewhere. Thread-safe.
class BinaryCompiler {
 public:
  virtual ~BinaryCompiler() = default;
  /// Returns the binaries of a kernel: one, or for GLSL with cooperative matrices one for each
  /// extension that can express it. Fails like Device::compile().
  virtual Result<std::vector<TargetBinary>> compile(const KernelSource& source) = 0;
};

/// Creates a compiler for a device, which need not be on this machine, except that libraries of
/// hip-host are for processors such as this one. Fails with `unavailable` if no installed compiler
/// supports it. Uses `compiler`, `compile_helper` and `compile_deadline` of the options.
Result<std::unique_ptr<BinaryCompiler>> create_binary_compiler(const DeviceInfo& device,
                                                               const OpenOptions& options);

}  // namespace greta::device
