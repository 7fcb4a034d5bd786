#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tuner/diagnose/changes/change_builds.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {

class SharedFile;

/// A case's kernels without a change, compiled for the device on which changes are tried.
struct BuiltCase {
  std::string device;  ///< its id
  std::string architecture;
  std::vector<std::vector<std::byte>> unchanged;  ///< code objects

  void write(const SharedFile& file) const;
  /// Reads what write() wrote of this many kernels. Throws Error if it lacks.
  void read(SharedFile& file, std::size_t kernels);
};

/// Changes of one kernel that are compiled together.
struct KernelGroup {
  std::size_t kernel = 0;
  std::vector<SlottedChange> changes;
};

/// A group of changes, and the same ones of other kernels that have the same lines.
struct ChangeGroup : KernelGroup {
  std::vector<KernelGroup> others;
};

/// Compiles groups of changes and runs the case with each change, in processes of their own.
/// Returns an outcome for each number below `count`: `correct_here` for those with which results
/// are correct, which are yet to be confirmed, and `untried` for those that no build contains.
std::vector<ChangeOutcome> try_groups(const FailedCase& failed, const BuiltCase& built,
                                      const std::vector<ChangeGroup>& groups, std::size_t count,
                                      std::chrono::steady_clock::time_point end);

}  // namespace greta::tuner
