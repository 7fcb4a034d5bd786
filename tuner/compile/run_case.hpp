#pragma once

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

/// A case whose kernels are loaded once, and whose memory is allocated once, to run it several
/// times. Between runs, data and expected values of its buffers, and arguments and grids of its
/// launches, may change, but no size. The device and the case must outlive it.
class LoadedCase {
 public:
  LoadedCase(Device& device, const KernelCase& run);
  ~LoadedCase();

  /// Returns what run_case() does.
  Result<std::string> run(Deadline deadline);
  /// Returns the contents of the buffers with expected values after the launches, in order,
  /// unchecked. Fails like run().
  Result<std::vector<std::vector<std::byte>>> contents(Deadline deadline);
  /// Returns the contents of these buffers after the last run, also one whose results are wrong.
  /// Fails if its memory is broken.
  Result<std::vector<std::vector<std::byte>>> last_contents();
  /// Has the next run load the kernels again, whose code objects have changed.
  void reload() { kernels_.clear(); }

 private:
  class Memory;  ///< the buffers of a case on a device

  Result<void> prepare();
  Result<void> launch(Deadline deadline);

  Device& device_;
  const KernelCase& run_;
  std::unique_ptr<Memory> memory_;
  std::unique_ptr<Stream> stream_;
  std::vector<std::unique_ptr<Kernel>> kernels_;  ///< of the launches, after the first run
};

}  // namespace greta::tuner
