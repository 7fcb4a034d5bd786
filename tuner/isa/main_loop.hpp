#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "tuner/isa/control_flow.hpp"
#include "tuner/isa/instruction.hpp"

namespace greta::tuner {

/// The part of a kernel in which it does most of its work.
struct MainLoop {
  /// The loop's blocks; all blocks if the kernel has no loop, or its matrix instructions lie in
  /// none.
  std::vector<bool> blocks;
  /// Where a turn begins; nothing if this is the whole kernel.
  std::optional<std::size_t> header;
  /// The blocks of a turn, in order.
  std::vector<std::size_t> path;
};

/// Finds the main loop: the innermost loop with the most work of matrix instructions; in a kernel
/// without matrix instructions, the one with the most vector and memory instructions. A turn takes
/// the path with the most work of matrix instructions; of those, the one that moves the most bytes
/// of memory, then of LDS; of those, the one with the fewest instructions. So a turn contains the
/// loads of the next tile, and not what only tiles at an edge do, or rows whose greatest score has
/// changed.
MainLoop find_main_loop(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow);

}  // namespace greta::tuner
