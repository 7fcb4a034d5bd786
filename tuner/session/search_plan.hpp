#pragma once

#include "tuner/session/session_work.hpp"

namespace greta::tuner {

/// Decides on which problem the search runs: times the default configuration, and chooses a
/// stand-in if one launch would take a large part of the budget. Sets `stand_in` of the result.
void plan_search(SessionWork& work);

/// Returns the limits of a candidate. One that is much slower than the best is cut off.
TrialLimits limits_of(const SessionWork& work, const Config& config);
/// Returns the limits of any candidate.
TrialLimits limits_of(const SessionWork& work);

/// Returns the estimated seconds that the finals need, from the time of the default configuration.
double seconds_for_finals(const SessionWork& work);

}  // namespace greta::tuner
