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

/// Returns how many slots of another text of a kernel a run of the case does not execute; 0 if that
/// is not known, as in GLSL.
std::size_t unexecuted_slots(const FailedCase& failed, const BuiltCase& built, std::size_t kernel,
                             const std::string& text, std::chrono::steady_clock::time_point end);

}  // namespace greta::tuner
