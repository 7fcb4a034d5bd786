#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/layers.hpp"

namespace greta::tuner {

/// An operand of an AMD instruction.
struct IsaOperand {
  enum class Kind { vector, accumulator, scalar, literal, other };
  Kind kind = Kind::other;
  std::uint32_t index = 0;    ///< of the first register
  std::uint32_t count = 1;    ///< registers
  std::uint32_t literal = 0;  ///< as 32 bits
  bool negative = false;      ///< a literal's sign, by which 64-bit operations extend it
  bool negated = false;       ///< the sign of a floating point source is changed
  bool absolute = false;      ///< the sign of a floating point source is dropped
  /// Which 16 bits of a register: "v1.l", "v1.h".
  enum class Half { none, low, high } half = Half::none;
};

// Numbers of scalar registers that have names. `null` reads as 0 whatever is written to it.
constexpr std::uint32_t isa_vcc = 106, isa_ttmp = 108, isa_m0 = 124, isa_null = 125, isa_exec = 126;
constexpr std::uint32_t isa_scalars = 128;

/// What an instruction does, or one half of a dual instruction of RDNA.
struct IsaOperation {
  std::string mnemonic;  ///< without the suffix of its encoding: "v_add_u32", not "v_add_u32_e32"
  std::vector<IsaOperand> operands;
  /// What follows the operands: "offset:16 gds", "dst_sel:DWORD …"; all of s_waitcnt's text.
  std::string modifiers;
};

/// An instruction of a listing.
struct IsaInstruction {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  IsaOperation operation;
  std::optional<IsaOperation> second;   ///< the other half of a dual instruction
  std::optional<std::uint64_t> target;  ///< address to which a branch goes
};

/// Returns the instructions of a kernel from a listing of llvm-objdump. `bytes` is the size of its
/// code; where it is 0, because the symbol has no size, the kernel is all that follows its symbol.
/// The result is empty if the listing lacks the kernel.
std::vector<IsaInstruction> read_instructions(std::string_view listing, std::string_view kernel,
                                              std::uint32_t bytes);

/// Returns the number behind `name` and a colon among the modifiers ("offset:16"), or 0.
std::uint32_t modifier(const IsaOperation& operation, std::string_view name);

}  // namespace greta::tuner
