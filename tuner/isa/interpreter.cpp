#include "tuner/isa/interpreter.hpp"

#include <algorithm>
#include <cstring>
#include <limits>
#include <queue>
#include <string_view>

#include "tuner/isa/instruction_kind.hpp"
#include "tuner/isa/scalar_semantics.hpp"
#include "tuner/isa/vector_semantics.hpp"

namespace greta::tuner {
namespace {

// Where arguments and the dispatch packet are. Nothing else has an address below 2^40 here.
constexpr std::uint64_t arguments_address = std::uint64_t{1} << 32;
constexpr std::uint64_t packet_address = std::uint64_t{2} << 32;

constexpr std::uint64_t most_instructions = 400'000;
constexpr std::uint32_t most_turns = 4;          // of the main loop
constexpr std::uint32_t most_turns_before = 64;  // of a block before it

class Interpreter {
 public:
  Interpreter(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow,
              const MainLoop& main, const IsaLaunch& launch, std::uint32_t wave)
      : instructions_(instructions),
        flow_(flow),
        main_(main),
        launch_(launch),
        state_(wave),
        visits_(flow.blocks.size(), 0),
        follows_(flow.blocks.size(), none) {
    start_ = main.header.value_or(0);
    find_distances();
    for (std::size_t i = 0; i + 1 < main.path.size(); ++i) {
      follows_[main.path[i]] = main.path[i + 1];
    }
    if (!main.path.empty() && main.header) follows_[main.path.back()] = *main.header;
    set_packet();
  }

  void begin(bool trap_registers) {
    std::uint32_t next = 0;
    const auto& d = launch_.descriptor;
    const auto pointer = [&](bool there, std::uint64_t address) {
      if (there && address != 0) {
        state_.set_scalar(WaveState::named(next, 2), 2, {address, UINT64_MAX});
      }
      if (there) next += 2;
    };
    if (d.private_segment_buffer) next += 4;
    pointer(d.dispatch_pointer, packet_address);
    pointer(d.queue_pointer, 0);
    pointer(d.argument_pointer, arguments_address);
    next = d.user_registers;
    for (std::uint32_t i = 0; i < 3 && !trap_registers; ++i) {
      if (d.workgroup_id[i]) state_.set_scalar(WaveState::named(next++, 1), 1, {0, UINT64_MAX});
    }
    for (std::uint32_t i = 0; i < 16; ++i) {
      state_.set_scalar(WaveState::named(isa_ttmp + i, 1), 1, {0, trap_registers ? UINT64_MAX : 0});
    }
    LaneValues threads;
    threads.known = state_.all_lanes();
    const auto& block = launch_.block;
    for (std::uint32_t i = 0; i < state_.lanes(); ++i) {
      threads.lane[i] =
          i % block[0] | (i / block[0] % block[1]) << 10 | (i / block[0] / block[1]) << 20;
    }
    state_.set_lanes({.kind = IsaOperand::Kind::vector}, 1, threads);
  }

  std::string run(const IsaObserver& observe) {
    std::size_t block = 0;
    for (std::uint64_t steps = 0; steps < most_instructions;) {
      ++visits_[block];
      if (block == start_ && visits_[block] > most_turns) return {};
      const IsaBlock& here = flow_.blocks[block];
      for (std::size_t i = here.first; i < here.last; ++i) {
        if (main_.blocks[block]) observe(i, state_);
        execute(instructions_[i]);
      }
      steps += here.last - here.first;
      if (here.next.empty()) break;
      block = successor(block);
    }
    return visits_[start_] > 0 ? "" : "the main loop was not reached";
  }

 private:
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// Computes each block's distance from the main loop, in blocks.
  void find_distances() {
    distance_.assign(flow_.blocks.size(), none);
    std::vector<std::vector<std::size_t>> before(flow_.blocks.size());
    for (const std::size_t block : flow_.order) {
      for (const std::size_t next : flow_.blocks[block].next) before[next].push_back(block);
    }
    std::queue<std::size_t> open({start_});
    distance_[start_] = 0;
    for (; !open.empty(); open.pop()) {
      for (const std::size_t block : before[open.front()]) {
        if (distance_[block] != none) continue;
        distance_[block] = distance_[open.front()] + 1;
        open.push(block);
      }
    }
  }

  /// The dispatch packet of the HSA standard: sizes of workgroups and of the grid.
  void set_packet() {
    packet_.resize(64);
    for (std::size_t i = 0; i < 3; ++i) {
      const auto size = static_cast<std::uint16_t>(launch_.block[i]);
      const std::uint32_t threads = launch_.grid[i] * launch_.block[i];
      std::memcpy(packet_.data() + 4 + 2 * i, &size, sizeof size);
      std::memcpy(packet_.data() + 12 + 4 * i, &threads, sizeof threads);
    }
  }

  /// Returns the condition of the branch that ends a block.
  Truth condition(const IsaInstruction& branch) const {
    const std::string_view name = branch.operation.mnemonic;
    const auto is = [](Truth truth, bool wanted) {
      return truth == Truth::unknown           ? truth
             : (truth == Truth::yes) == wanted ? Truth::yes
                                               : Truth::no;
    };
    if (name == "s_branch") return Truth::yes;
    if (name == "s_cbranch_scc0") return is(state_.scc, false);
    if (name == "s_cbranch_scc1") return is(state_.scc, true);
    if (name == "s_cbranch_vccz") return is(state_.any(state_.vcc()), false);
    if (name == "s_cbranch_vccnz") return is(state_.any(state_.vcc()), true);
    // Lanes of which it is unknown whether they are active are taken to be.
    const Truth active = state_.active() != 0 ? Truth::yes : Truth::no;
    if (name == "s_cbranch_execz") return is(active, false);
    if (name == "s_cbranch_execnz") return is(active, true);
    return Truth::unknown;
  }

  std::size_t successor(std::size_t block) const {
    const auto& next = flow_.blocks[block].next;
    if (next.size() == 1) return next[0];
    const bool before = visits_[start_] == 0;
    const bool long_enough = before && visits_[block] > most_turns_before;
    const Truth taken = condition(instructions_[flow_.blocks[block].last - 1]);
    if (taken != Truth::unknown && !long_enough) return next[taken == Truth::yes ? 1 : 0];
    if (!before && follows_[block] != none) return follows_[block];
    return distance_[next[1]] < distance_[next[0]] ? next[1] : next[0];
  }

  /// Returns 32 bits of the arguments or the packet; unknown ones at other addresses.
  ScalarValue word_at(std::uint64_t address) const {
    for (const auto& [bytes, start] :
         {std::pair{&launch_.arguments, arguments_address}, std::pair{&packet_, packet_address}}) {
      if (address < start || address - start + 4 > bytes->size()) continue;
      std::uint32_t word = 0;
      std::memcpy(&word, bytes->data() + (address - start), sizeof word);
      return {word, UINT64_MAX};
    }
    return {};
  }

  void load_scalars(const IsaOperation& operation) {
    const auto& operands = operation.operands;
    if (operands.size() < 3 || operation.mnemonic.starts_with("s_buffer")) {
      if (!operands.empty()) state_.forget(operands[0]);
      return;
    }
    const auto base = state_.scalar_of(operands[1], 2), offset = state_.scalar_of(operands[2], 1);
    const bool known = base.all_known(2) && offset.all_known(1) && operation.modifiers.empty();
    const auto at = base.value + static_cast<std::uint64_t>(
                                     std::int64_t{static_cast<std::int32_t>(offset.value)});
    for (std::uint32_t word = 0; word < operands[0].count; ++word) {
      state_.set_scalar(WaveState::named(operands[0].index + word, 1), 1,
                        known ? word_at(at + 4 * word) : ScalarValue{});
    }
  }

  void execute(const IsaInstruction& instruction) {
    const IsaOperation& operation = instruction.operation;
    switch (kind_of(instruction)) {
      case InstructionKind::matrix:
      case InstructionKind::accumulator_move:
      case InstructionKind::vector:
        execute_vector(instruction);
        break;
      case InstructionKind::scalar:
        run_scalar(operation, state_);
        break;
      case InstructionKind::scalar_memory:
        load_scalars(operation);
        break;
      case InstructionKind::lds:
      case InstructionKind::vector_memory:
        if (loads_registers(instruction)) state_.forget(operation.operands[0]);
        break;
      default:
        break;
    }
  }

  static bool loads_registers(const IsaInstruction& instruction) {
    const IsaOperation& operation = instruction.operation;
    const std::string_view name = operation.mnemonic;
    if (operation.operands.empty() || writes_lds(instruction)) return false;
    const auto has = [name](std::string_view part) { return name.find(part) != name.npos; };
    if (has("atomic") || has("_rtn")) {
      const std::string_view all = operation.modifiers;
      return has("_rtn") || all.find("glc") != all.npos || all.find("sc0") != all.npos ||
             all.find("RETURN") != all.npos;
    }
    return has("load") || has("read") || has("swizzle") || has("permute");
  }

  static bool reads_register(const IsaOperation& operation, const IsaOperand& result) {
    return std::any_of(operation.operands.begin() + 1, operation.operands.end(),
                       [&](const IsaOperand& source) {
                         return source.kind == result.kind && source.index == result.index;
                       });
  }

  /// Both halves of a dual instruction read their sources before either writes.
  void execute_vector(const IsaInstruction& instruction) {
    const IsaOperation& first = instruction.operation;
    if (!instruction.second || first.operands.empty() || instruction.second->operands.empty()) {
      run_vector(first, state_);
      return;
    }
    const IsaOperation& second = *instruction.second;
    const bool second_after = reads_register(second, first.operands[0]);
    const bool first_after = reads_register(first, second.operands[0]);
    run_vector(second_after ? second : first, state_);
    run_vector(second_after ? first : second, state_);
    if (!second_after || !first_after) return;
    state_.forget(first.operands[0]);
    state_.forget(second.operands[0]);
  }

  const std::vector<IsaInstruction>& instructions_;
  const ControlFlow& flow_;
  const MainLoop& main_;
  const IsaLaunch& launch_;
  WaveState state_;
  std::size_t start_ = 0;
  std::vector<std::uint32_t> visits_;
  std::vector<std::size_t> follows_, distance_;
  std::vector<std::byte> packet_;
};

}  // namespace

std::string interpret(const std::vector<IsaInstruction>& instructions, const ControlFlow& flow,
                      const MainLoop& main, const IsaLaunch& launch, std::uint32_t wave,
                      bool trap_registers, const IsaObserver& observe) {
  Interpreter interpreter(instructions, flow, main, launch, wave);
  interpreter.begin(trap_registers);
  return interpreter.run(observe);
}

}  // namespace greta::tuner
