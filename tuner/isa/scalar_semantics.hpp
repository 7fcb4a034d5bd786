#pragma once

#include "tuner/isa/wave_state.hpp"

namespace greta::tuner {

/// Executes an instruction of the scalar ALU. The results of one that is not known here, or whose
/// sources are unknown, become unknown.
/// Source: AMD's ISA manuals of CDNA 3, RDNA 3 and RDNA 4, "Scalar ALU operations".
void run_scalar(const IsaOperation& operation, WaveState& state);

}  // namespace greta::tuner
