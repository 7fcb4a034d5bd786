#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/candidates.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// Compiles kernels for an architecture, whether this machine has such a device or not.
/// Thread-safe.
class TargetCompiler {
 public:
  virtual ~TargetCompiler() = default;
  /// The device that is compiled for, as far as its architecture tells; its `compiler` is the one
  /// that is used.
  virtual const DeviceInfo& target() const = 0;
  /// Failures as Device::compile().
  virtual Result<CompiledKernel> compile(const KernelSource& source) = 0;
};

/// For an AMD architecture ("gfx942"), by hiprtc or clang; for one of NVIDIA ("sm_90"), by NVRTC;
/// or for one that hip-host imitates ("host-gfx942"). Fails with `invalid_argument` for others, and
/// with `unavailable` where no compiler of this machine knows it. Of the options, `compiler`,
/// `compile_helper` and `compile_deadline` are used.
Result<std::unique_ptr<TargetCompiler>> create_hip_target(const std::string& architecture,
                                                          const OpenOptions& options);
/// For a device of this machine as it was probed, which is not opened: code objects that
/// Device::load() takes, SPIR-V where it runs GLSL. Fails as create_hip_target().
Result<std::unique_ptr<TargetCompiler>> create_probed_target(const DeviceInfo& device,
                                                             const OpenOptions& options);
/// For an open device, e.g. of open_null_hardware(), whose driver compiles; it gives no code
/// objects.
std::unique_ptr<TargetCompiler> create_device_target(std::unique_ptr<Device> device);

/// Compiles all kernels of a configuration. Fails with `constraints` where it is not valid, else as
/// TargetCompiler::compile().
Result<CompiledChoice> compile_plan(TargetCompiler& compiler, const Operation& operation,
                                    const Candidate& choice);
/// Does so for many, on all cores; in the order of `choices`.
std::vector<CompileOutcome> compile_plans(TargetCompiler& compiler, const Operation& operation,
                                          const std::vector<Candidate>& choices);

}  // namespace greta::tuner
