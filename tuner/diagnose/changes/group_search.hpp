#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "tuner/diagnose/changes/build_runs.hpp"
#include "tuner/diagnose/changes/change_builds.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {

/// Changes of one kernel that are compiled together.
struct KernelGroup {
  std::size_t kernel = 0;
  std::vector<SlottedChange> changes;
};

/// A group of changes, and the same ones of other kernels that have the same lines.
struct ChangeGroup : KernelGroup {
  std::vector<KernelGroup> others;
};

/// What a trial of a change in a group gave.
struct TriedChange {
  ChangeOutcome outcome = ChangeOutcome::untried;
  ChangeEffect effect;
};

/// Compiles groups of changes and runs the case with each change, in processes of their own.
/// Returns an outcome for each number below `count`: `correct_here` for those with which results
/// are correct, which are yet to be confirmed, and `untried` for those that no build contains.
std::vector<TriedChange> try_groups(const FailedCase& failed, const BuiltCase& built,
                                    const std::vector<ChangeGroup>& groups, std::size_t count,
                                    std::chrono::steady_clock::time_point end);

}  // namespace greta::tuner
