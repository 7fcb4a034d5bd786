#include "tuner/isa/instruction.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <utility>

namespace greta::tuner {
namespace {

using OperandKind = IsaOperand::Kind;

constexpr std::string_view isa_blanks = " \t";

std::string_view trimmed_text(std::string_view text) {
  const auto begin = text.find_first_not_of(isa_blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(isa_blanks) - begin + 1);
}

/// Reads a number of this base at the start of a text; nothing if there is none.
std::optional<std::uint64_t> leading_number(std::string_view text, int base = 10) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc()) return std::nullopt;
  return value;
}

/// Returns the first register and the number of registers of "12" or "[12:15]".
std::optional<std::pair<std::uint32_t, std::uint32_t>> register_range(std::string_view text) {
  const bool range = text.starts_with('[');
  const auto first = leading_number(text.substr(range ? 1 : 0));
  if (!first) return std::nullopt;
  const auto colon = text.find(':');
  const auto last = range && colon != text.npos ? leading_number(text.substr(colon + 1)) : first;
  if (!last || *last < *first || *last > 1023) return std::nullopt;
  return std::pair{static_cast<std::uint32_t>(*first),
                   static_cast<std::uint32_t>(*last - *first + 1)};
}

std::optional<IsaOperand> named_register(std::string_view text) {
  struct Name {
    std::string_view name;
    std::uint32_t index, count;
  };
  static constexpr std::array<Name, 10> names{{{"vcc", isa_vcc, 2},
                                               {"vcc_lo", isa_vcc, 1},
                                               {"vcc_hi", isa_vcc + 1, 1},
                                               {"exec", isa_exec, 2},
                                               {"exec_lo", isa_exec, 1},
                                               {"exec_hi", isa_exec + 1, 1},
                                               {"m0", isa_m0, 1},
                                               {"null", isa_null, 1},
                                               {"flat_scratch", 102, 2},
                                               {"xnack_mask", 104, 2}}};
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const Name& name) { return name.name == text; });
  if (found == names.end()) return std::nullopt;
  return IsaOperand{.kind = OperandKind::scalar, .index = found->index, .count = found->count};
}

std::optional<IsaOperand> numbered_register(std::string_view text) {
  struct File {
    std::string_view prefix;
    OperandKind kind;
    std::uint32_t first;
  };
  for (const File& file :
       {File{"ttmp", OperandKind::scalar, isa_ttmp}, File{"v", OperandKind::vector, 0},
        File{"a", OperandKind::accumulator, 0}, File{"s", OperandKind::scalar, 0}}) {
    if (!text.starts_with(file.prefix)) continue;
    const auto range = register_range(text.substr(file.prefix.size()));
    if (!range) continue;
    return IsaOperand{
        .kind = file.kind, .index = file.first + range->first, .count = range->second};
  }
  return std::nullopt;
}

std::optional<IsaOperand> literal_operand(std::string_view text) {
  const bool negative = text.starts_with('-');
  const std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty() || digits[0] < '0' || digits[0] > '9') return std::nullopt;
  std::uint32_t bits = 0;
  if (digits.starts_with("0x")) {
    bits = static_cast<std::uint32_t>(leading_number(digits.substr(2), 16).value_or(0));
  } else if (digits.find('.') != digits.npos) {
    bits = std::bit_cast<std::uint32_t>(std::strtof(std::string(text).c_str(), nullptr));
    return IsaOperand{.kind = OperandKind::literal, .literal = bits};
  } else {
    bits = static_cast<std::uint32_t>(leading_number(digits).value_or(0));
  }
  return IsaOperand{
      .kind = OperandKind::literal, .literal = negative ? 0U - bits : bits, .negative = negative};
}

IsaOperand read_operand(std::string_view text) {
  if (auto number = literal_operand(text)) return *number;
  bool negated = false, absolute = false;
  if (text.starts_with('-')) {
    negated = true;
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text.starts_with('|') && text.ends_with('|')) {
    absolute = true;
    text = text.substr(1, text.size() - 2);
  }
  auto operand = named_register(text);
  if (!operand) operand = numbered_register(text);
  if (!operand) return {};
  if (text.ends_with(".l")) operand->half = IsaOperand::Half::low;
  if (text.ends_with(".h")) operand->half = IsaOperand::Half::high;
  operand->negated = negated;
  operand->absolute = absolute;
  return *operand;
}

/// Drops the suffix of the encoding.
std::string plain_mnemonic(std::string_view text) {
  for (const std::string_view suffix : {"_e64_dpp", "_e32", "_e64", "_dpp", "_sdwa"}) {
    if (text.ends_with(suffix)) return std::string(text.substr(0, text.size() - suffix.size()));
  }
  return std::string(text);
}

/// Reads "v_add_u32_e32 v1, v2, v3" or "ds_read_b32 v1, v2 offset:4".
IsaOperation read_operation(std::string_view text) {
  text = trimmed_text(text);
  IsaOperation operation;
  const auto space = std::min(text.find_first_of(isa_blanks), text.size());
  operation.mnemonic = plain_mnemonic(text.substr(0, space));
  text = trimmed_text(text.substr(space));
  if (operation.mnemonic == "s_waitcnt") {  // "vmcnt(0) lgkmcnt(0)"
    operation.modifiers = text;
    return operation;
  }
  while (!text.empty()) {
    // An operand ends at a comma; behind the last one, a blank begins the modifiers.
    const auto comma = std::min(text.find(','), text.size());
    const std::string_view part = text.substr(0, comma);
    const auto end = std::min(part.find_first_of(isa_blanks), part.size());
    operation.operands.push_back(read_operand(part.substr(0, end)));
    if (end < part.size()) {
      operation.modifiers = trimmed_text(text.substr(end));
      break;
    }
    text = comma < text.size() ? trimmed_text(text.substr(comma + 1)) : std::string_view();
  }
  return operation;
}

/// A branch counts words from the next instruction, in the lower half of its encoding. Its text may
/// name a label instead.
std::optional<std::uint64_t> branch_target(const IsaInstruction& instruction,
                                           std::uint64_t encoding) {
  const std::string_view name = instruction.operation.mnemonic;
  if (!name.starts_with("s_cbranch_") && name != "s_branch") return std::nullopt;
  const auto words = static_cast<std::int16_t>(encoding & 0xFFFF);
  return instruction.address + instruction.bytes +
         4 * static_cast<std::uint64_t>(std::int64_t{words});
}

/// Reads "\ts_mov_b32 s0, 1    // 000000001900: BE800081"; nothing for lines of other kinds.
std::optional<IsaInstruction> read_line(std::string_view line) {
  const auto comment = line.find("// ");
  if (!line.starts_with('\t') || comment == line.npos) return std::nullopt;
  std::string_view encoding = line.substr(comment + 3);
  const auto colon = encoding.find(':');
  const auto address = leading_number(encoding, 16);
  if (!address || colon == encoding.npos) return std::nullopt;
  encoding = trimmed_text(encoding.substr(colon + 1));
  encoding = trimmed_text(encoding.substr(0, encoding.find('<')));
  IsaInstruction instruction;
  instruction.address = *address;
  // Words are separated by isa_blanks.
  instruction.bytes =
      4 * static_cast<std::uint32_t>(1 + std::count(encoding.begin(), encoding.end(), ' '));
  std::string_view text = trimmed_text(line.substr(0, comment));
  if (const auto dual = text.find(" :: "); dual != text.npos) {
    instruction.second = read_operation(text.substr(dual + 4));
    text = text.substr(0, dual);
  }
  instruction.operation = read_operation(text);
  instruction.target = branch_target(instruction, leading_number(encoding, 16).value_or(0));
  return instruction;
}

}  // namespace

std::vector<IsaInstruction> read_instructions(std::string_view listing, std::string_view kernel,
                                              std::uint32_t bytes) {
  std::vector<IsaInstruction> instructions;
  const std::string symbol = "<" + std::string(kernel) + ">:";
  const auto at = listing.find(symbol);
  if (at == listing.npos) return instructions;
  listing.remove_prefix(at + symbol.size());
  while (!listing.empty()) {
    const auto end = std::min(listing.find('\n'), listing.size());
    auto instruction = read_line(listing.substr(0, end));
    listing.remove_prefix(std::min(end + 1, listing.size()));
    if (!instruction) continue;
    const bool behind = bytes != 0 && !instructions.empty() &&
                        instruction->address >= instructions.front().address + bytes;
    if (behind) break;
    instructions.push_back(*std::move(instruction));
  }
  return instructions;
}

std::uint32_t modifier(const IsaOperation& operation, std::string_view name) {
  const std::string key = std::string(name) + ":";
  const auto at = operation.modifiers.find(key);
  if (at == std::string::npos) return 0;
  const std::string_view text = std::string_view(operation.modifiers).substr(at + key.size());
  const bool hexadecimal = text.starts_with("0x");
  return static_cast<std::uint32_t>(
      leading_number(text.substr(hexadecimal ? 2 : 0), hexadecimal ? 16 : 10).value_or(0));
}

}  // namespace greta::tuner
