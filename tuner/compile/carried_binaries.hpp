#pragma once

#include <set>
#include <string>
#include <vector>

#include "db/carried_binary.hpp"
#include "db/lookup/lookup.hpp"
#include "runtime/device/binary_target.hpp"

namespace greta::tuner {

/// The kernels that a runtime would run for problems, each once.
class WantedKernels {
 public:
  /// Adds the kernels of a look-up's answer for a problem on its device. Products of a vendor's
  /// library have none. Throws Error if the problem has no valid configuration.
  void add(const Lookup& lookup, const Problem& problem);
  const std::vector<KernelSource>& sources() const { return sources_; }

 private:
  std::set<std::string> known_;  ///< content keys
  std::vector<KernelSource> sources_;
};

/// Compiles kernels with `jobs` threads (0: one per core). Fails with the first failure, whose
/// message begins with the kernel's name.
Result<std::vector<CarriedBinary>> compile_binaries(const std::vector<KernelSource>& sources,
                                                    BinaryCompiler& compiler, unsigned jobs = 0);

}  // namespace greta::tuner
