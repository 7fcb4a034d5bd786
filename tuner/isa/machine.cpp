#include "tuner/isa/machine.hpp"

#include <algorithm>
#include <array>

#include "runtime/device/hardware/architectures.hpp"

namespace greta::tuner {
namespace {

bool is_transcendental(std::string_view name) {
  static constexpr std::array<std::string_view, 7> prefixes{"v_exp_",  "v_log_", "v_rcp_", "v_rsq_",
                                                            "v_sqrt_", "v_sin_", "v_cos_"};
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

bool is_slow_multiplication(std::string_view name) {
  return name.starts_with("v_mul_lo_u32") || name.starts_with("v_mul_hi_") ||
         name.starts_with("v_mad_u64_u32") || name.starts_with("v_mad_i64_i32") ||
         name.starts_with("v_mad_co_");
}

bool is_single(std::string_view type) {
  return type == "f32" || type == "f64";
}

bool is_byte(std::string_view type) {
  return type.ends_with('8') || type == "f8f6f4";
}

using LaneGroups = std::vector<std::vector<std::uint32_t>>;

/// Returns groups of lanes from groups of quads: numbers of four lanes each, of 32 lanes. Waves of
/// 64 lanes repeat them.
LaneGroups of_quads(const LaneGroups& quads, std::uint32_t wave) {
  LaneGroups groups;
  for (std::uint32_t half = 0; half < wave; half += 32) {
    for (const auto& group : quads) {
      auto& lanes = groups.emplace_back();
      for (const std::uint32_t quad : group) {
        for (std::uint32_t lane = 0; lane < 4; ++lane) lanes.push_back(half + quad * 4 + lane);
      }
    }
  }
  return groups;
}

LaneGroups in_a_row(std::uint32_t lanes, std::uint32_t wave) {
  LaneGroups groups;
  for (std::uint32_t first = 0; first < wave; first += lanes) {
    auto& group = groups.emplace_back();
    for (std::uint32_t lane = first; lane < std::min(first + lanes, wave); ++lane) {
      group.push_back(lane);
    }
  }
  return groups;
}

}  // namespace

std::optional<IsaMachine> IsaMachine::of(std::string_view architecture) {
  IsaMachine machine;
  if (!architecture.starts_with("gfx")) return std::nullopt;
  switch (matrix_cores(architecture)) {
    case MatrixCores::mfma:
      machine.cdna_ = machine.pairs_ = true;
      machine.gfx950_ = architecture == "gfx950";
      machine.gfx90a_ = architecture == "gfx90a" || architecture == "gfx908";
      machine.f16_flops_ = machine.gfx950_ ? 1024 : machine.gfx90a_ ? 256 : 512;
      machine.f32_flops_ = 64;
      return machine;
    case MatrixCores::wmma11:
    case MatrixCores::wmma12: {
      const bool rdna4 = matrix_cores(architecture) == MatrixCores::wmma12;
      machine.wave_ = 32;
      machine.pairs_ = !rdna4;
      machine.f16_flops_ = rdna4 ? 512 : 256;
      return machine;
    }
    default:
      return std::nullopt;
  }
}

double IsaMachine::peak_flops(std::string_view type) const {
  if (is_single(type)) return f32_flops_;
  if (type == "f6f4") return 4 * f16_flops_;
  if (!is_byte(type)) return f16_flops_;
  // Integers of 8 bits have the rate of f16 on CDNA 2 and RDNA 3.
  return gfx90a_ || (!cdna_ && f16_flops_ == 256) ? f16_flops_ : 2 * f16_flops_;
}

double IsaMachine::matrix_cycles(std::string_view mnemonic) const {
  return matrix_cycles(mnemonic, matrix_type(mnemonic));
}

double IsaMachine::matrix_cycles(const IsaOperation& operation) const {
  return matrix_cycles(operation.mnemonic, matrix_type(operation));
}

double IsaMachine::matrix_cycles(std::string_view mnemonic, std::string_view type) const {
  const MatrixShape shape = matrix_shape(mnemonic);
  const double flops = shape.flops();
  if (flops == 0) return 0;
  const double at_peak = flops / peak_flops(type);
  if (!cdna_) return at_peak;
  if (gfx90a_ || is_single(type)) return std::max(at_peak, 8.0);
  // From CDNA 3 on, instructions of a shorter k take as long.
  const double passes = shape.m == 32 ? 8 * shape.blocks : shape.blocks == 1 ? 4 : 2 * shape.blocks;
  return std::max(at_peak, 4 * (shape.m == 4 ? 2 : passes));
}

double IsaMachine::vector_cycles(const IsaInstruction& instruction) const {
  const double once = issue_cycles();
  const std::string_view name = instruction.operation.mnemonic;
  switch (kind_of(instruction)) {
    case InstructionKind::matrix:
      return cdna_ ? once : matrix_cycles(name);
    case InstructionKind::accumulator_move:
      return once;
    case InstructionKind::vector:
      // RDNA has a unit of its own for transcendental functions.
      if (is_transcendental(name)) return cdna_ ? once * (gfx950_ ? 2 : 4) : once;
      return is_slow_multiplication(name) ? once * 4 : once;
    default:
      return 0;
  }
}

// The order of service was measured: AMD's "AMDGPU Kernel Optimization Guide", "Empirical LDS
// measurements" (gfx942, gfx950, gfx1100, gfx1201), and for gfx950's 64 banks, which serve reads of
// 8 and 16 bytes, HipKittens (arXiv 2511.08083, "Phases and banks of shared memory instructions").
// Accesses of 16 bytes that are not listed there are served eight lanes at a time.
std::uint32_t IsaMachine::lds_banks(bool write, std::uint32_t bytes) const {
  return gfx950_ && !write && (bytes == 8 || bytes == 16) ? 64 : 32;
}

LaneGroups IsaMachine::lds_groups(bool write, std::uint32_t bytes) const {
  if (bytes <= 4) return in_a_row(32, wave_);
  if (bytes == 8) return in_a_row(lds_banks(write, bytes) / 2, wave_);
  if (write || !pairs_) return in_a_row(8, wave_);
  if (lds_banks(write, bytes) == 64) return of_quads({{0, 3, 5, 6}, {1, 2, 4, 7}}, wave_);
  return of_quads({{0, 5}, {1, 4}, {2, 7}, {3, 6}}, wave_);
}

}  // namespace greta::tuner
