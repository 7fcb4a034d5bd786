#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kernels/sampling/candidates.hpp"
#include "runtime/device/backend.hpp"
#include "tuner/compile/compiled_choice.hpp"

namespace greta::tuner {

/// Returns the lines of a compiler's log that say what costs time: of ptxas, that it lets products
/// of warpgroups wait for each other (C7510 to C7520), or ignores setmaxnreg. Each without its
/// place.
std::vector<std::string> performance_warnings(std::string_view log);

/// Compiles kernels for an architecture, whether or not this machine has such a device.
/// Thread-safe.
class TargetCompiler {
 public:
  virtual ~TargetCompiler() = default;
  /// Returns the target device, as far as its architecture determines it; `compiler` is the one in
  /// use.
  virtual const DeviceInfo& target() const = 0;
  /// Fails like Device::compile().
  virtual Result<CompiledKernel> compile(const KernelSource& source) = 0;
};

/// Creates a compiler for an AMD architecture ("gfx942"; hiprtc or clang), an NVIDIA architecture
/// ("sm_90"; NVRTC), or one that hip-host emulates ("host-gfx942"). Fails with `invalid_argument`
/// for others, and with `unavailable` if no installed compiler supports it. Uses `compiler`,
/// `compile_helper` and `compile_deadline` of the options.
Result<std::unique_ptr<TargetCompiler>> create_hip_target(const std::string& architecture,
                                                          const OpenOptions& options);
/// Creates a compiler for a probed device of this machine, which is not opened. It returns code
/// objects for Device::load(), which are SPIR-V if the device runs GLSL. Fails like
/// create_hip_target().
Result<std::unique_ptr<TargetCompiler>> create_probed_target(const DeviceInfo& device,
                                                             const OpenOptions& options);
/// Creates a compiler from an open device whose driver compiles, e.g. of open_null_hardware(). It
/// returns no code objects.
std::unique_ptr<TargetCompiler> create_device_target(std::unique_ptr<Device> device);

/// Compiles all kernels of a configuration. Fails with `constraints` if it is invalid, else like
/// TargetCompiler::compile().
Result<CompiledChoice> compile_plan(TargetCompiler& compiler, const Operation& operation,
                                    const Candidate& choice);
/// Compiles several configurations on all cores, and examines the main loops of their kernels.
/// Returns outcomes in the order of `choices`.
std::vector<CompileOutcome> compile_plans(TargetCompiler& compiler, const Operation& operation,
                                          const std::vector<Candidate>& choices);

}  // namespace greta::tuner
