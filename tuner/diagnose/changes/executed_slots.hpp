#pragma once

#include <chrono>
#include <vector>

#include "tuner/diagnose/changes/change_slots.hpp"
#include "tuner/diagnose/changes/group_search.hpp"

namespace greta::tuner {

/// Returns which slots of each kernel of a case are executed: a change of the others changes
/// nothing. Known only for kernels in HIP; else, and if there is no time, all count as executed.
/// The kernels run in processes of their own.
std::vector<std::vector<char>> executed_slots(const FailedCase& failed, const BuiltCase& built,
                                              const std::vector<std::vector<ChangeSlot>>& slots,
                                              std::chrono::steady_clock::time_point end);

}  // namespace greta::tuner
