#include "tuner/isa/lds_access.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "tuner/isa/instruction_kind.hpp"

namespace greta::tuner {
namespace {

/// An instruction's access to LDS by address: bytes of a lane, and what is added to its address. An
/// instruction with two addresses has two of them.
struct LdsAccess {
  std::uint32_t bytes = 0, offset = 0;
};

bool name_contains(std::string_view name, std::string_view part) {
  return name.find(part) != name.npos;
}

/// Returns no access for exchanges between lanes, which touch no bank.
std::vector<LdsAccess> lds_accesses(const IsaOperation& operation) {
  const std::string_view name = operation.mnemonic;
  const std::uint32_t bytes = lane_bytes(name);
  if (!name.starts_with("ds_") || name_contains(name, "permute") || name_contains(name, "swizzle"))
    return {};
  if (!name_contains(name, "2addr") && !name_contains(name, "read2") &&
      !name_contains(name, "write2")) {
    return {{bytes, modifier(operation, "offset")}};
  }
  const std::uint32_t stride =
      name_contains(name, "st64") || name_contains(name, "stride64") ? 64 : 1;
  const std::uint32_t unit = bytes / 2 * stride;
  return {{bytes / 2, modifier(operation, "offset0") * unit},
          {bytes / 2, modifier(operation, "offset1") * unit}};
}

double group_cycles(std::uint32_t banks) {
  return banks * 4 / IsaMachine::lds_bytes;
}

/// Returns the cycles of an access for these addresses of the active lanes.
double access_cycles(const LdsAccess& access, bool write, const IsaMachine& machine,
                     const LaneValues& address, std::uint64_t active) {
  const std::uint32_t banks = machine.lds_banks(write, access.bytes);
  double turns = 0;
  for (const auto& group : machine.lds_groups(write, access.bytes)) {
    std::map<std::uint64_t, std::set<std::uint64_t>> words;  // by bank
    for (const std::uint32_t lane : group) {
      if ((active >> lane & 1) == 0) continue;
      const std::uint64_t first = address.lane[lane] + access.offset;
      for (std::uint64_t at = first / 4; at <= (first + access.bytes - 1) / 4; ++at) {
        words[at % banks].insert(at);
      }
    }
    std::size_t most = 0;
    for (const auto& [bank, wanted] : words) most = std::max(most, wanted.size());
    turns += static_cast<double>(most);
  }
  return turns * group_cycles(banks);
}

}  // namespace

double least_lds_cycles(const IsaInstruction& instruction, const IsaMachine& machine) {
  const IsaOperation& operation = instruction.operation;
  const bool lds = kind_of(instruction) == InstructionKind::lds;
  const bool write = writes_lds(instruction);
  if (!lds && !write) return 0;
  const auto list = lds_accesses(operation);
  if (list.empty()) return lane_bytes(operation.mnemonic) * machine.wave() / IsaMachine::lds_bytes;
  double cycles = 0;
  for (const LdsAccess& access : list) {
    const auto groups = machine.lds_groups(write, access.bytes).size();
    cycles += static_cast<double>(groups) * group_cycles(machine.lds_banks(write, access.bytes));
  }
  return cycles;
}

std::optional<double> lds_cycles(const IsaInstruction& instruction, const IsaMachine& machine,
                                 const WaveState& state) {
  const IsaOperation& operation = instruction.operation;
  const auto list = lds_accesses(operation);
  if (list.empty()) return least_lds_cycles(instruction, machine);
  const bool write = writes_lds(instruction);
  // "ds_read_b32 v1, v2" reads from v2, "ds_write_b32 v1, v2" writes to v1.
  const bool returns = !write && (name_contains(operation.mnemonic, "read") ||
                                  name_contains(operation.mnemonic, "load") ||
                                  name_contains(operation.mnemonic, "_rtn"));
  const std::size_t position = returns ? 1 : 0;
  if (operation.operands.size() <= position) return std::nullopt;
  const LaneValues address = state.lanes_of(operation.operands[position], 1);
  const std::uint64_t active = state.active();
  if ((active & ~address.known) != 0) return std::nullopt;
  double cycles = 0;
  for (const LdsAccess& access : list)
    cycles += access_cycles(access, write, machine, address, active);
  return cycles;
}

}  // namespace greta::tuner
