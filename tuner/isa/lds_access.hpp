#pragma once

#include <optional>

#include "tuner/isa/instruction.hpp"
#include "tuner/isa/machine.hpp"
#include "tuner/isa/wave_state.hpp"

namespace greta::tuner {

/// Returns the cycles for which an LDS unit is busy with an instruction of a wave if no lanes
/// conflict: also with exchanges between lanes, and with loads from memory to LDS. 0 for others.
double least_lds_cycles(const IsaInstruction& instruction, const IsaMachine& machine);

/// Returns the cycles for the addresses in `state`: lanes that are served together and want
/// different words of one bank are served one after the other. Returns nothing if an address is
/// unknown.
std::optional<double> lds_cycles(const IsaInstruction& instruction, const IsaMachine& machine,
                                 const WaveState& state);

}  // namespace greta::tuner
