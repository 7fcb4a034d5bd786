#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "tuner/isa/instruction_kind.hpp"

namespace greta::tuner {

/// What instructions cost on an AMD architecture, in cycles.
///
/// Sources. Passes of matrix instructions: LLVM, SISchedule.td (a pass is four cycles), and AMD's
/// CDNA 3 ISA manual, "Dependency resolution: required independent instructions". They agree with
/// the rates that AMD's white papers state for a compute unit and cycle, in f16: 1024 (CDNA 2),
/// 2048 (CDNA 3), 4096 (CDNA 4), 512 (RDNA 3) and 1024 (RDNA 4). Vector instructions of 64 lanes
/// take four cycles on CDNA, those of 32 lanes one cycle on RDNA; transcendental functions and
/// 32-bit multiplications of integers have a quarter of the rate (the same sources), the former
/// half of it on CDNA 4 (white paper).
class IsaMachine {
 public:
  /// Returns nothing for architectures without matrix cores, and for those of other vendors.
  static std::optional<IsaMachine> of(std::string_view architecture);

  std::uint32_t wave() const { return wave_; }
  /// Returns the cycles for which an instruction occupies the matrix cores of a SIMD.
  double matrix_cycles(std::string_view mnemonic) const;
  double matrix_cycles(const IsaOperation& operation) const;
  /// Returns the cycles for which an instruction occupies the vector unit of a SIMD: all of a
  /// matrix instruction's on RDNA, whose matrix instructions run there, and its issue on CDNA.
  double vector_cycles(const IsaInstruction& instruction) const;
  /// Returns the most floating point operations per cycle of a SIMD on operands of a type.
  double peak_flops(std::string_view type) const;
  /// The cycles between two instructions of one wave. CDNA: a SIMD has a turn every four cycles.
  double issue_cycles() const { return cdna_ ? 4 : 1; }

  /// The SIMDs that share an LDS unit, and the bytes that it moves in a cycle ("AMDGPU Kernel
  /// Optimization Guide": 128; a workgroup processor of RDNA has two such units).
  std::uint32_t lds_simds() const { return cdna_ ? 4 : 2; }
  static constexpr double lds_bytes = 128;
  /// The banks of LDS, of four bytes each, for an access of so many bytes per lane.
  std::uint32_t lds_banks(bool write, std::uint32_t lane_bytes) const;
  /// Returns the groups of lanes that are served together, in the order of service.
  std::vector<std::vector<std::uint32_t>> lds_groups(bool write, std::uint32_t lane_bytes) const;

 private:
  double matrix_cycles(std::string_view mnemonic, std::string_view type) const;

  double f16_flops_ = 0;  ///< per cycle and SIMD
  double f32_flops_ = 0;
  bool cdna_ = false, gfx950_ = false, gfx90a_ = false;
  bool pairs_ = false;  ///< lanes 0 to 3 are served together with lanes 20 to 23
  std::uint32_t wave_ = 64;
};

}  // namespace greta::tuner
