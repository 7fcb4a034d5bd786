#pragma once

#include <cstdint>
#include <string_view>

#include "tuner/isa/instruction.hpp"

namespace greta::tuner {

/// What executes an instruction.
enum class InstructionKind {
  matrix,            ///< matrix cores: v_mfma, v_smfmac, v_wmma, v_swmmac
  accumulator_move,  ///< v_accvgpr_read, v_accvgpr_write, v_accvgpr_mov
  vector,            ///< vector ALUs; a dual instruction is one instruction
  scalar,            ///< scalar ALU
  lds,
  vector_memory,  ///< global, buffer, flat and scratch memory
  scalar_memory,
  wait,   ///< for memory: s_waitcnt, s_wait_*
  other,  ///< branches, barriers, s_nop, hints
};

InstructionKind kind_of(const IsaInstruction& instruction);

/// Whether an instruction waits until nothing of a kind is under way: s_waitcnt with vmcnt(0) or
/// lgkmcnt(0), or gfx12's wait for a count of 0. Waits for scalar loads and stores alone are not
/// counted: a kernel's loads end out of order, so that there is no other wait for them.
bool drains(const IsaInstruction& instruction);

/// Returns the bytes of a lane that a memory instruction moves: 16 for ds_read_b128. 0 for those
/// that move no data (barriers, invalidations) and for other instructions.
std::uint32_t lane_bytes(std::string_view mnemonic);

/// Whether an instruction writes to LDS: ds_write, ds_store and loads from memory to LDS.
bool writes_lds(const IsaInstruction& instruction);

/// The product of a matrix instruction: `blocks` products of m x k by k x n.
struct MatrixShape {
  std::uint32_t m = 0, n = 0, k = 0, blocks = 1;
  double flops() const { return 2.0 * m * n * k * blocks; }
};

/// Reads the shape from a mnemonic ("v_mfma_f32_32x32x8_f16"); zeros for other instructions.
MatrixShape matrix_shape(std::string_view mnemonic);

/// Returns the type of a matrix instruction's operands as the mnemonic names it: "bf16", "f32".
std::string_view matrix_type(std::string_view mnemonic);
/// The same of an instruction, whose modifiers may name the types: "f6f4" if both operands of
/// gfx950's f8f6f4 have less than eight bits.
std::string_view matrix_type(const IsaOperation& operation);

}  // namespace greta::tuner
