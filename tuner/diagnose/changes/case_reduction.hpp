#pragma once

#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/compile/kernel_case.hpp"

namespace greta::tuner {

class SharedFile;

/// The first workgroups of a case's launches that suffice to show its fault.
struct CaseReduction {
  std::vector<Grid> grids;  ///< of the launches; empty: all workgroups are needed
  /// Which elements of each buffer these workgroups determine; none of those without expected
  /// values.
  std::vector<std::vector<char>> determined;

  bool exists() const { return !grids.empty(); }
  /// Reduces the grids of a case, and has nothing expected of other elements.
  void apply(KernelCase& run) const;

  void write(const SharedFile& file) const;
  /// Reads what write() wrote. Throws Error if it did not do so to the end.
  void read(SharedFile& file);
};

/// Finds few workgroups of a case that compute some of its wrong elements as all do. Whether they
/// do is seen in runs of the faulty kernels, so that the correct ones may need others: a change
/// with correct results is to be confirmed with all, and one with wrong ones may be correct.
/// Workgroups of earlier launches are left out only if this keeps some correct elements.
CaseReduction reduced_case(Device& device, const KernelCase& run, Deadline deadline);

}  // namespace greta::tuner
