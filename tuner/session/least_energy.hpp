#pragma once

#include <vector>

#include "tuner/session/session_work.hpp"

namespace greta::tuner {

/// Measures the energy of a launch of the finalists and the default, in interleaved blocks, and
/// sets the result's energy_winner: the finalist that takes the least, if its interval is below
/// that of the default, otherwise the default. Adds a note if the device has no energy counter.
void find_least_energy(SessionWork& work, std::vector<Config> finalists);

}  // namespace greta::tuner
