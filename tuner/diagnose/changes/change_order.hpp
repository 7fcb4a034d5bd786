#pragma once

#include <vector>

#include "tuner/diagnose/changes/source_changes.hpp"
#include "tuner/diagnose/changes/text_model.hpp"

namespace greta::tuner {

/// Sets how likely each change is to mend a fault (SourceChange::worth), and sorts them by it, the
/// most likely first, and from the end of the source on where they are equal: a kernel's own code
/// is there. Unlikely changes whose words are nowhere else next to what is around are left out.
void order_changes(std::vector<SourceChange>& changes, TextModel& model);

}  // namespace greta::tuner
