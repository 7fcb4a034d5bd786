#include "tuner/isa/instruction_kind.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

namespace greta::tuner {
namespace {

template <std::size_t count>
bool has_prefix(std::string_view name, const std::array<std::string_view, count>& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [name](std::string_view prefix) { return name.starts_with(prefix); });
}

constexpr std::array<std::string_view, 4> matrix_prefixes{"v_mfma_", "v_smfmac_", "v_wmma_",
                                                          "v_swmmac_"};
constexpr std::array<std::string_view, 4> memory_prefixes{"global_", "buffer_", "flat_",
                                                          "scratch_"};
// Scalar instructions that compute nothing.
constexpr std::array<std::string_view, 22> idle_prefixes{
    "s_nop",     "s_branch",     "s_cbranch",       "s_barrier",     "s_delay_alu", "s_clause",
    "s_sleep",   "s_setprio",    "s_sendmsg",       "s_endpgm",      "s_trap",      "s_icache",
    "s_dcache",  "s_gl1",        "s_inst_prefetch", "s_set_gpr_idx", "s_code_end",  "s_ttrace",
    "s_denorm_", "s_round_mode", "s_sethalt",       "s_prefetch"};

bool is_decimal(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

/// Returns the bits of an element in a part of a name: 128 for "b128", 16 for "ushort"; else 0.
std::uint32_t bits_in(std::string_view part) {
  struct SizeWord {
    std::string_view name;
    std::uint32_t bits;
  };
  static constexpr std::array<SizeWord, 10> words{{{"dword", 32},
                                                   {"dwordx2", 64},
                                                   {"dwordx3", 96},
                                                   {"dwordx4", 128},
                                                   {"short", 16},
                                                   {"ushort", 16},
                                                   {"sshort", 16},
                                                   {"byte", 8},
                                                   {"ubyte", 8},
                                                   {"sbyte", 8}}};
  for (const SizeWord& word : words) {
    if (part == word.name) return word.bits;
  }
  const bool typed = part.size() > 1 && std::string_view("buif").find(part[0]) != part.npos &&
                     std::all_of(part.begin() + 1, part.end(), is_decimal);
  std::uint32_t bits = 0;
  if (typed) std::from_chars(part.data() + 1, part.data() + part.size(), bits);
  return bits;
}

/// Calls `use` with each part between underscores until it returns true.
template <typename Use>
void for_parts(std::string_view name, const Use& use) {
  while (!name.empty()) {
    const auto end = std::min(name.find('_'), name.size());
    if (use(name.substr(0, end))) return;
    name.remove_prefix(std::min(end + 1, name.size()));
  }
}

/// Whether a modifier of a wait is there and is 0: "vmcnt(0)".
bool waits_for_none(std::string_view modifiers, std::string_view counter) {
  const auto at = modifiers.find(counter);
  return at != modifiers.npos && modifiers.substr(at + counter.size()).starts_with("(0)");
}

}  // namespace

InstructionKind kind_of(const IsaInstruction& instruction) {
  const std::string_view name = instruction.operation.mnemonic;
  if (name.starts_with("v_")) {
    if (has_prefix(name, matrix_prefixes)) return InstructionKind::matrix;
    if (name.starts_with("v_accvgpr_")) return InstructionKind::accumulator_move;
    return name == "v_nop" ? InstructionKind::other : InstructionKind::vector;
  }
  if (name.starts_with("ds_")) return InstructionKind::lds;
  if (has_prefix(name, memory_prefixes)) {
    return lane_bytes(name) > 0 ? InstructionKind::vector_memory : InstructionKind::other;
  }
  if (!name.starts_with("s_")) return InstructionKind::other;
  if (name.starts_with("s_load_") || name.starts_with("s_buffer_load_")) {
    return InstructionKind::scalar_memory;
  }
  if (name == "s_wait_alu" || name == "s_wait_idle" || name == "s_waitcnt_depctr") {
    return InstructionKind::other;  // for registers
  }
  if (name.starts_with("s_wait")) return InstructionKind::wait;
  return has_prefix(name, idle_prefixes) ? InstructionKind::other : InstructionKind::scalar;
}

bool drains(const IsaInstruction& instruction) {
  const auto& [name, operands, modifiers] = instruction.operation;
  if (name == "s_waitcnt") {
    return waits_for_none(modifiers, "vmcnt") || waits_for_none(modifiers, "lgkmcnt");
  }
  static constexpr std::array<std::string_view, 3> counters{"s_wait_loadcnt", "s_wait_dscnt",
                                                            "s_wait_loadcnt_dscnt"};
  const bool counts = std::find(counters.begin(), counters.end(), name) != counters.end();
  return counts && !operands.empty() && operands[0].literal == 0;
}

std::uint32_t lane_bytes(std::string_view mnemonic) {
  const bool lds = mnemonic.starts_with("ds_");
  if (!lds && !has_prefix(mnemonic, memory_prefixes)) return 0;
  if (mnemonic == "ds_swizzle_b32" || mnemonic.starts_with("ds_bpermute") ||
      mnemonic.starts_with("ds_permute")) {
    return 4;
  }
  std::uint32_t bits = 0, times = 1;
  for_parts(mnemonic, [&](std::string_view part) {
    if (part == "read2" || part == "write2" || part == "2addr" || part == "read2st64" ||
        part == "write2st64") {
      times = 2;
    }
    bits = bits_in(part);
    return bits > 0;
  });
  if (bits == 0 && mnemonic.find("_atomic_") != mnemonic.npos) bits = 32;  // "global_atomic_add"
  return bits / 8 * times;
}

bool writes_lds(const IsaInstruction& instruction) {
  const std::string_view name = instruction.operation.mnemonic;
  if (name.starts_with("ds_")) {
    return name.find("write") != name.npos || name.find("store") != name.npos;
  }
  if (kind_of(instruction) != InstructionKind::vector_memory) return false;
  if (name.find("_lds_") != name.npos) return true;
  const std::string& words = instruction.operation.modifiers;
  return words == "lds" || words.starts_with("lds ") || words.ends_with(" lds") ||
         words.find(" lds ") != words.npos;
}

MatrixShape matrix_shape(std::string_view mnemonic) {
  MatrixShape shape;
  if (!has_prefix(mnemonic, matrix_prefixes)) return shape;
  bool found = false;
  for_parts(mnemonic, [&](std::string_view part) {
    const char* const end = part.data() + part.size();
    const auto times = part.find('x');
    if (!found && times != part.npos && is_decimal(part[0])) {  // "32x32x8", also "32x32x8f16"
      auto at = std::from_chars(part.data(), end, shape.m).ptr + 1;
      at = std::from_chars(at, end, shape.n).ptr + 1;
      std::from_chars(at, end, shape.k);
      found = true;
    } else if (found && part.size() > 1 && part.back() == 'b' && is_decimal(part[0])) {  // "4b"
      std::from_chars(part.data(), end, shape.blocks);
    }
    return false;
  });
  return shape;
}

std::string_view matrix_type(std::string_view mnemonic) {
  // The last type that is named is the operands'; the first one is the result's.
  std::string_view type;
  for_parts(mnemonic, [&](std::string_view part) {
    const auto letter = part.find_first_of("bfiux");
    const bool shape = !part.empty() && is_decimal(part[0]);
    if (shape) {  // "32x32x8f16"
      const auto named = part.find_first_of("bfi");
      if (named != part.npos && named + 1 < part.size()) type = part.substr(named);
    } else if (letter == 0 && part.size() > 1 && is_decimal(part.back())) {
      type = part;
    }
    return false;
  });
  return type;
}

std::string_view matrix_type(const IsaOperation& operation) {
  const std::string_view type = matrix_type(operation.mnemonic);
  constexpr std::uint32_t first_narrow = 2;  // the numbers of formats of 6 and 4 bits
  const bool narrow = type == "f8f6f4" && modifier(operation, "cbsz") >= first_narrow &&
                      modifier(operation, "blgp") >= first_narrow;
  return narrow ? "f6f4" : type;
}

}  // namespace greta::tuner
