#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "runtime/device/hip/code_object.hpp"
#include "tuner/isa/control_flow.hpp"
#include "tuner/isa/main_loop.hpp"
#include "tuner/isa/wave_state.hpp"

namespace greta::tuner {

/// What a kernel is launched with.
struct IsaLaunch {
  device::hip::KernelDescriptor descriptor;
  std::vector<std::byte> arguments;
  std::array<std::uint32_t, 3> block{1, 1, 1}, grid{1, 1, 1};  ///< threads; workgroups
};

/// Called for an instruction of the main loop with the state before it.
using IsaObserver = std::function<void(std::size_t instruction, const WaveState& state)>;

/// Executes the first wave of a kernel's first workgroup up to some turns of its main loop. It
/// computes addresses and conditions, not data: what is loaded from memory, except for arguments,
/// is unknown, and so is what follows from it. A branch with an unknown condition goes the way to
/// the main loop, and through the main loop along its path; a loop before it is left after some
/// turns. Returns an empty string, or why the main loop was not reached. `wave` is the number of
/// lanes. Thread numbers are expected in one register, as from gfx90a on.
std::string interpret(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow,
                      const MainLoop& main, const IsaLaunch& launch, std::uint32_t wave,
                      bool trap_registers, const IsaObserver& observe);

}  // namespace greta::tuner
