#pragma once

#include <string>
#include <vector>

#include "tuner/diagnose/evidence.hpp"

namespace greta::tuner {

/// Returns what was measured of the wrong elements' errors, each fact in a line with the share of
/// the wrong elements that it is true for, the largest share first: signs, powers of two, values of
/// operands at the same place, columns of the same lane. Facts help where no hypothesis fits.
std::vector<std::string> facts_of_errors(const Evidence& evidence);

}  // namespace greta::tuner
