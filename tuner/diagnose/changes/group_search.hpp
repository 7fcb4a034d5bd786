#pragma once

#include <chrono>
#include <cstdint>
#include <vector>

#include "tuner/diagnose/changes/change_builds.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {

/// Changes of one kernel that are compiled together.
struct ChangeGroup {
  std::size_t kernel = 0;
  std::vector<SlottedChange> changes;
};

/// Compiles groups of changes and runs the case with each change, in processes of their own.
/// Returns an outcome for each number below `count`: `correct_here` for those with which results
/// are correct, which are yet to be confirmed, and `untried` for those that no build contains.
std::vector<ChangeOutcome> try_groups(const FailedCase& failed,
                                      const std::vector<ChangeGroup>& groups, std::size_t count,
                                      std::chrono::steady_clock::time_point end);

}  // namespace greta::tuner
