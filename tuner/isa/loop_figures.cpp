#include "tuner/isa/loop_figures.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "runtime/device/hardware/architectures.hpp"
#include "tuner/isa/instruction_kind.hpp"
#include "tuner/isa/lds_access.hpp"
#include "tuner/isa/machine.hpp"

namespace greta::tuner {
namespace {

void count_instruction(const IsaInstruction& instruction, const IsaMachine& machine,
                       LoopFigures& figures) {
  const std::string& name = instruction.operation.mnemonic;
  ++figures.instructions;
  figures.vector_cycles += machine.vector_cycles(instruction);
  figures.lds_least_cycles += least_lds_cycles(instruction, machine);
  if (drains(instruction)) ++figures.drains;
  const InstructionKind kind = kind_of(instruction);
  if (kind == InstructionKind::lds || writes_lds(instruction)) {
    figures.lds_bytes += lane_bytes(name) * machine.wave();
  }
  switch (kind) {
    case InstructionKind::matrix:
      ++figures.matrix;
      figures.matrix_type = matrix_type(instruction.operation);
      figures.matrix_flops += matrix_shape(name).flops();
      figures.matrix_cycles += machine.matrix_cycles(instruction.operation);
      break;
    case InstructionKind::accumulator_move:
      ++figures.accumulator_moves;
      break;
    case InstructionKind::vector:
      ++figures.vector;
      break;
    case InstructionKind::scalar:
      ++figures.scalar;
      break;
    case InstructionKind::lds:
      ++figures.lds;
      break;
    case InstructionKind::vector_memory:
      ++figures.vector_memory;
      break;
    case InstructionKind::scalar_memory:
      ++figures.scalar_memory;
      break;
    case InstructionKind::wait:
      ++figures.waits;
      break;
    case InstructionKind::other:
      break;
  }
}

/// The cycles of an instruction over the turns that were executed.
struct TurnCycles {
  double sum = 0;
  std::uint32_t turns = 0;
  bool known = true;
};

/// Computes the LDS cycles of a turn by executing some.
void simulate_lds(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow,
                  const MainLoop& main, const IsaLaunch& launch, const IsaMachine& machine,
                  bool trap_registers, LoopFigures& figures) {
  std::map<std::size_t, TurnCycles> cycles;
  const auto observe = [&](std::size_t at, const WaveState& state) {
    const IsaInstruction& instruction = instructions[at];
    if (kind_of(instruction) != InstructionKind::lds && !writes_lds(instruction)) return;
    const auto one = lds_cycles(instruction, machine, state);
    TurnCycles& all = cycles[at];
    ++all.turns;
    all.sum += one.value_or(0);
    all.known = all.known && one.has_value();
  };
  figures.lds_unknown =
      interpret(instructions, flow, main, launch, machine.wave(), trap_registers, observe);
  double sum = 0;
  for (const std::size_t block : main.path) {
    for (std::size_t i = flow.blocks[block].first; i < flow.blocks[block].last; ++i) {
      if (least_lds_cycles(instructions[i], machine) == 0) continue;
      const auto found = cycles.find(i);
      if (found == cycles.end() || !found->second.known) {
        if (figures.lds_unknown.empty()) {
          figures.lds_unknown =
              found == cycles.end() ? "the wave skips an access" : "an address depends on data";
        }
        return;
      }
      sum += found->second.sum / found->second.turns;
    }
  }
  if (figures.lds_unknown.empty()) figures.lds_cycles = sum;
}

void find_loop_bound(const IsaMachine& machine, LoopFigures& figures) {
  figures.issue_cycles = machine.issue_cycles() * figures.instructions;
  if (figures.matrix == 0) return;
  const double lds = figures.lds_cycles.value_or(figures.lds_least_cycles);
  // The first of equal bounds is named.
  const std::array<std::pair<double, std::string_view>, 4> bounds{
      {{figures.matrix_cycles, "matrix cores"},
       {figures.vector_cycles, "vector unit"},
       {figures.issue_cycles / std::max(1.0, figures.waves), "instruction issue"},
       {lds * machine.lds_simds(), "LDS"}}};
  const auto* const most = std::max_element(
      bounds.begin(), bounds.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  const double least = figures.matrix_flops / machine.peak_flops(figures.matrix_type);
  figures.bound = least / most->first * std::min(1.0, figures.waves);
  figures.bounded_by = most->second;
}

}  // namespace

std::optional<LoopFigures> examine_main_loop(const LoopSource& source,
                                             const std::optional<IsaLaunch>& launch) {
  const auto machine = IsaMachine::of(source.architecture);
  const auto instructions = read_instructions(source.listing, source.kernel, source.code_bytes);
  if (!machine || instructions.empty()) return std::nullopt;
  const ControlFlow flow(instructions);
  const MainLoop main = find_main_loop(instructions, flow);
  LoopFigures figures;
  figures.loop = main.header.has_value();
  figures.waves = source.waves;
  for (const std::size_t block : main.path) {
    for (std::size_t i = flow.blocks[block].first; i < flow.blocks[block].last; ++i) {
      count_instruction(instructions[i], *machine, figures);
    }
  }
  if (figures.lds_least_cycles == 0) {
    figures.lds_cycles = 0;
  } else if (launch) {
    const bool trap_registers = matrix_cores(source.architecture) == MatrixCores::wmma12;
    simulate_lds(instructions, flow, main, *launch, *machine, trap_registers, figures);
  } else {
    figures.lds_unknown = "the kernel's arguments are unknown";
  }
  find_loop_bound(*machine, figures);
  return figures;
}

}  // namespace greta::tuner
