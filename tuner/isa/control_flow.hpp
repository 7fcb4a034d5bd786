#pragma once

#include <cstddef>
#include <vector>

#include "tuner/isa/instruction.hpp"

namespace greta::tuner {

/// Instructions that run one after the other.
struct IsaBlock {
  std::size_t first = 0, last = 0;  ///< positions of instructions; `last` is behind the block
  std::vector<std::size_t> next;    ///< blocks that may follow: where a branch goes comes last
};

/// A natural loop: the blocks that reach a jump back to the header without passing it.
struct IsaLoop {
  std::size_t header = 0;
  std::vector<bool> blocks;  ///< whether a block belongs to it
  bool innermost = true;     ///< whether no other loop lies in it
};

/// The control-flow graph of a kernel. Block 0 is where it starts.
/// Sources: Cooper, Harvey and Kennedy, "A Simple, Fast Dominance Algorithm" (2001); Aho, Lam,
/// Sethi and Ullman, "Compilers", 9.6 (natural loops).
struct ControlFlow {
  explicit ControlFlow(const std::vector<IsaInstruction>& instructions);

  std::vector<IsaBlock> blocks;
  std::vector<IsaLoop> loops;
  /// Blocks that the kernel can reach, each before those that follow it except for jumps back.
  std::vector<std::size_t> order;

 private:
  void find_order();
  void find_loops();
};

}  // namespace greta::tuner
