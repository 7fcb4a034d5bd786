#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

/// Runs a case's launches on a device, in memory with guard zones, and checks all written data.
/// Returns an empty string on success, else one line on the error. Fails with `invalid_argument` if
/// the case is for another kind of device, or with HIP for another architecture, and otherwise like
/// the device's calls. SPIR-V runs on every Vulkan device with the required features.
Result<std::string> run_case(Device& device, const KernelCase& run, Deadline deadline);

/// A case whose kernels are loaded once, to run it several times, also with other numbers among the
/// arguments of its launches. The device and the case must outlive it.
class LoadedCase {
 public:
  LoadedCase(Device& device, const KernelCase& run) : device_(device), run_(run) {}

  /// Returns what run_case() does.
  Result<std::string> run(Deadline deadline);
  /// Returns the contents of the buffers with expected values after the launches, in order,
  /// unchecked. Between runs, the case's buffers may get other data. Fails like run().
  Result<std::vector<std::vector<std::byte>>> contents(Deadline deadline);

 private:
  /// Launches the kernels with arguments as `pack` returns their bytes.
  Result<void> launch(
      const std::function<std::vector<std::byte>(const std::vector<CaseArgument>&)>& pack,
      Deadline deadline);

  Device& device_;
  const KernelCase& run_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< of the launches, after the first run
};

}  // namespace greta::tuner
