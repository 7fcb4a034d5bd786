#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tuner/isa/interpreter.hpp"

namespace greta::tuner {

/// What a wave does in a turn of a kernel's main loop (main_loop.hpp), and what follows for its
/// speed. Cycles are those of machine.hpp.
struct LoopFigures {
  bool loop = false;  ///< false: the kernel has no loop, or its matrix instructions lie in none
  std::uint32_t instructions = 0;
  std::uint32_t matrix = 0, vector = 0, scalar = 0, lds = 0, vector_memory = 0, scalar_memory = 0;
  std::uint32_t waits = 0;
  std::uint32_t drains = 0;             ///< waits until nothing is under way
  std::uint32_t accumulator_moves = 0;  ///< not counted as vector instructions
  std::string matrix_type;              ///< of the operands: "bf16"; empty without any
  double matrix_flops = 0;
  double matrix_cycles = 0;  ///< of a SIMD's matrix cores
  double vector_cycles = 0;  ///< of a SIMD's vector unit
  double issue_cycles = 0;   ///< least time between the first and the last instruction of a wave
  double lds_bytes = 0;
  double lds_least_cycles = 0;       ///< of an LDS unit, without conflicts
  std::optional<double> lds_cycles;  ///< with conflicts; nothing if addresses are unknown
  std::string lds_unknown;           ///< why
  double waves = 0;                  ///< resident per SIMD
  /// The largest share of the device's rate of these matrix instructions that the loop can reach,
  /// and what bounds it. Memory, barriers and dependencies may lower it. Nothing for kernels
  /// without matrix instructions.
  std::optional<double> bound;
  std::string bounded_by;  ///< "matrix cores", "vector unit", "instruction issue", "LDS"

  double matrix_share() const { return instructions == 0 ? 0 : double(matrix) / instructions; }
  double vector_per_matrix() const { return matrix == 0 ? 0 : double(vector) / matrix; }
  double scalar_per_matrix() const { return matrix == 0 ? 0 : double(scalar) / matrix; }
  /// All instructions of a wave for 10^6 floating point operations of its matrix instructions.
  double per_mflop() const { return matrix == 0 ? 0 : instructions / (matrix_flops / 1e6); }
};

/// A kernel's machine code, and how many of its waves are resident.
struct LoopSource {
  std::string_view listing;       ///< of llvm-objdump
  std::string kernel;             ///< its symbol
  std::uint32_t code_bytes = 0;   ///< 0 if the symbol has no size
  std::string_view architecture;  ///< "gfx942"
  double waves = 0;               ///< per SIMD
};

/// Examines a kernel's main loop. Without a launch, addresses of LDS are unknown. Returns nothing
/// for architectures without matrix cores, and for a kernel that the listing lacks.
std::optional<LoopFigures> examine_main_loop(const LoopSource& source,
                                             const std::optional<IsaLaunch>& launch);

}  // namespace greta::tuner
