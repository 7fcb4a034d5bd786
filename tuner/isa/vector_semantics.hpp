#pragma once

#include "tuner/isa/wave_state.hpp"

namespace greta::tuner {

/// Executes an instruction of the vector ALU, or of the matrix cores. Integer arithmetic, masks and
/// the conversions of divisions are computed; the results of all others become unknown.
/// Source: AMD's ISA manuals of CDNA 3, RDNA 3 and RDNA 4, "Vector ALU operations".
void run_vector(const IsaOperation& operation, WaveState& state);

}  // namespace greta::tuner
