#include "tuner/diagnose/changes/change_builds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <regex>
#include <set>

namespace greta::tuner {
namespace {

constexpr std::array<std::uint32_t, 2> mark_of_number{0x7c31e95bU, 0xd6408f2aU};
// The line of a change's text in the compiler's messages is this and its number.
constexpr std::uint32_t first_line = 1000000;
constexpr std::uint32_t number_id = 1999;  // the SpecId of the number; glslang takes up to 2047

/// Whether a slot can have a change's text in place of its own.
bool holds(const ChangeSlot& slot, const SourceChange& change) {
  const std::size_t end = change.start + change.length;
  if (change.is_statement())
    return slot.kind == ChangeSlot::Kind::insertion && slot.start == change.start;
  return slot.kind != ChangeSlot::Kind::insertion && slot.start <= change.start && end <= slot.end;
}

bool meet(const ChangeSlot& a, const ChangeSlot& b) {
  return a.start < b.end && b.start < a.end;
}

/// Returns a slot's text with a change, all lines of which have one number of their own.
std::string version_of(const KernelSource& source, const SlottedChange& one) {
  const auto& [number, change, slot] = one;
  std::string text = source.text.substr(slot.start, slot.end - slot.start);
  text.replace(change->start - slot.start, change->length, change->by);
  const std::string begin = fmt::format("\n#line {}\n", first_line + number);
  for (std::size_t at = text.find('\n'); at != std::string::npos;
       at = text.find('\n', at + begin.size())) {
    const bool goes_on = at > 0 && text[at - 1] == '\\';
    text.replace(goes_on ? at - 1 : at, goes_on ? 2 : 1, begin);
    at -= goes_on ? 1 : 0;
  }
  return begin + text + "\n#line 1\n";
}

/// Returns the text of a macro with all its versions, in one line.
std::string macro_text(const KernelSource& source, const std::vector<const SlottedChange*>& all) {
  const ChangeSlot& slot = all.front()->slot;
  const std::string own = source.text.substr(slot.start, slot.end - slot.start);
  std::string text;
  for (const SlottedChange* const one : all) {
    std::string version = own;
    version.replace(one->change->start - slot.start, one->change->length, one->change->by);
    text += fmt::format("GRETA_HOST_CHOSEN == {}u ? ({}) : ", one->number, version);
  }
  return fmt::format("({}({}))", text, own);
}

/// Returns the text of a slot with all its versions.
std::string slot_text(const KernelSource& source, const std::vector<const SlottedChange*>& all) {
  const ChangeSlot& slot = all.front()->slot;
  if (slot.kind == ChangeSlot::Kind::macro) return macro_text(source, all);
  const std::string own = source.text.substr(slot.start, slot.end - slot.start);
  std::string text;
  for (const SlottedChange* const one : all) {
    const std::string version = version_of(source, *one);
    if (slot.kind == ChangeSlot::Kind::expression) {
      text += fmt::format("GRETA_HOST_CHOSEN == {}u ? ({}) : ", one->number, version);
    } else {
      text += fmt::format("if (GRETA_HOST_CHOSEN == {}u) {{ {} }} else ", one->number, version);
    }
  }
  if (slot.kind == ChangeSlot::Kind::expression) return fmt::format("({}({}\n))", text, own);
  return fmt::format("{{ {} {{ {}\n }} }}", text, own);
}

/// Adds the number to a HIP source, as a variable that may change, and the address of marks.
std::string with_number_of_hip(const std::string& text) {
  return fmt::format(
      "__attribute__((used)) unsigned greta_host_change[5] = {{{}U, {}U, 0, 0, 0}};\n"
      "#define GRETA_HOST_CHOSEN greta_host_change[2]\n"
      "#define GRETA_HOST_MARK(i) (*((unsigned char*)((unsigned long)greta_host_change[4] << 32 | "
      "greta_host_change[3]) + i) = 1)\n#line 1\n{}",
      mark_of_number[0], mark_of_number[1], text);
}

constexpr std::string_view end_of_arguments = "} args;", main_of_glsl = "void main() {";

/// Whether a group's number may be the last argument of a kernel in GLSL. lavapipe runs all
/// versions and drops the results of those that are not in force, but would wait at their barriers.
bool may_be_argument(const KernelSource& source, const std::vector<SlottedChange>& group) {
  constexpr std::string_view barrier = "arrier";
  const auto waits = [&](const SlottedChange& one) {
    const auto& [number, change, slot] = one;
    return change->by.find(barrier) != std::string::npos ||
           source.text.substr(slot.start, slot.end - slot.start).find(barrier) != std::string::npos;
  };
  return source.language == Language::glsl &&
         source.text.find(end_of_arguments) != std::string::npos &&
         source.text.find(main_of_glsl) != std::string::npos &&
         std::none_of(group.begin(), group.end(), waits);
}

/// Adds the number to a GLSL source, as its last argument or as a specialization constant.
std::string with_number_of_glsl(std::string text, bool as_argument) {
  std::string declaration =
      fmt::format("layout(constant_id = {}) const uint greta_host_change = 0;\n", number_id);
  if (as_argument) {
    const std::size_t main = text.find(main_of_glsl) + main_of_glsl.size();
    text.insert(main, " greta_host_change = args.greta_host_chosen;");
    text.insert(text.find(end_of_arguments), "uint greta_host_chosen; ");
    declaration = "uint greta_host_change;\n";
  }
  const std::size_t version = text.find("#version");
  const std::size_t line = version == std::string::npos ? 0 : text.find('\n', version) + 1;
  text.insert(line, declaration + "#define GRETA_HOST_CHOSEN greta_host_change\n");
  return text;
}

/// Returns the byte of SPIR-V with the specialization constant's value; 0 if there is none.
std::size_t place_in_spirv(const std::vector<std::byte>& binary) {
  constexpr std::uint32_t decorate = 71, constant = 50, spec_id = 1, header_words = 5;
  std::vector<std::uint32_t> words(binary.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), binary.data(), words.size() * sizeof(std::uint32_t));
  std::uint32_t id = 0;
  for (std::size_t at = header_words; at + 3 < words.size(); at += std::max(1U, words[at] >> 16)) {
    const std::uint32_t code = words[at] & 0xFFFF;
    if (code == decorate && words[at + 2] == spec_id && words[at + 3] == number_id)
      id = words[at + 1];
    if (code == constant && id != 0 && words[at + 2] == id) return (at + 3) * sizeof(std::uint32_t);
  }
  return 0;
}

/// Returns the byte after the mark in a library of hip-host; 0 if it has none.
std::size_t place_in_library(const std::vector<std::byte>& library) {
  const auto* const mark = reinterpret_cast<const std::byte*>(mark_of_number.data());
  const auto found =
      std::search(library.begin(), library.end(), mark, mark + sizeof mark_of_number);
  return found == library.end()
             ? 0
             : static_cast<std::size_t>(found - library.begin()) + sizeof mark_of_number;
}

bool put(std::vector<std::byte>& binary, std::size_t at, const void* data, std::size_t bytes) {
  if (at == 0 || at + bytes > binary.size()) return false;
  std::memcpy(&binary[at], data, bytes);
  return true;
}

/// Returns the numbers of changes that a compiler's messages name.
std::set<std::uint32_t> named_changes(const std::string& log) {
  static const std::regex line(":(1\\d{6}):");
  std::set<std::uint32_t> numbers;
  for (auto at = std::sregex_iterator(log.begin(), log.end(), line); at != std::sregex_iterator();
       ++at)
    numbers.insert(static_cast<std::uint32_t>(std::stoul((*at)[1])) - first_line);
  return numbers;
}

void build_into(TargetCompiler& compiler, const KernelSource& source,
                std::vector<SlottedChange> group, int depth, bool as_argument,
                std::vector<ChangeBuild>& builds) {
  constexpr int most_passes = 30, deepest = 4;  // glslang reports one error at a time
  for (int pass = 0; pass < most_passes && !group.empty(); ++pass) {
    KernelSource changed = source;
    changed.text = text_with_changes(source, group, as_argument);
    if (changed.text.empty()) return;
    auto compiled = compiler.compile(changed);
    if (compiled && !compiled->code_object.empty()) {
      ChangeBuild& made = builds.emplace_back();
      for (const SlottedChange& one : group) made.numbers.push_back(one.number);
      made.code_object = std::move(compiled->code_object);
      made.as_argument = as_argument;
      return;
    }
    const std::string log = compiled ? "" : compiled.failure().message + compiled.failure().log;
    const auto named = named_changes(log);
    const auto erased =
        std::erase_if(group, [&](const SlottedChange& one) { return named.contains(one.number); });
    if (erased > 0) continue;
    if (!as_argument) break;
    as_argument = false;  // a version may have to be a constant, as an array's extent
  }
  if (group.size() < 2 || depth == deepest) return;
  const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
  build_into(compiler, source, {group.begin(), middle}, depth + 1, as_argument, builds);
  build_into(compiler, source, {middle, group.end()}, depth + 1, as_argument, builds);
}

}  // namespace

const ChangeSlot* slot_of(const SourceChange& change, const std::vector<ChangeSlot>& slots) {
  const ChangeSlot* best = nullptr;
  for (const ChangeSlot& slot : slots) {
    if (holds(slot, change) && (best == nullptr || slot.end - slot.start < best->end - best->start))
      best = &slot;
  }
  return best;
}

std::vector<std::vector<SlottedChange>> change_groups(const std::vector<SourceChange>& changes,
                                                      const std::vector<std::uint32_t>& numbers,
                                                      const std::vector<ChangeSlot>& slots,
                                                      std::size_t most) {
  std::vector<std::vector<SlottedChange>> groups;
  std::vector<std::vector<ChangeSlot>> used;  // of each group
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const ChangeSlot* const best = slot_of(changes[i], slots);
    if (best == nullptr) continue;
    std::size_t g = 0;
    for (; g < groups.size(); ++g) {
      if (groups[g].size() >= most) continue;
      const bool known = std::find(used[g].begin(), used[g].end(), *best) != used[g].end();
      if (known || std::none_of(used[g].begin(), used[g].end(),
                                [&](const ChangeSlot& other) { return meet(other, *best); }))
        break;
    }
    if (g == groups.size()) {
      groups.emplace_back();
      used.emplace_back();
    }
    groups[g].push_back({numbers[i], &changes[i], *best});
    used[g].push_back(*best);
  }
  return groups;
}

std::string text_with_changes(const KernelSource& source, const std::vector<SlottedChange>& group,
                              bool as_argument) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const SlottedChange*>> slots;
  for (const SlottedChange& one : group) slots[{one.slot.start, one.slot.end}].push_back(&one);
  std::string text = source.text;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    const auto [start, end] = slot->first;
    text.replace(start, end - start, slot_text(source, slot->second));
  }
  return source.language == Language::glsl ? with_number_of_glsl(std::move(text), as_argument)
                                           : with_number_of_hip(text);
}

std::vector<ChangeBuild> build_changes(TargetCompiler& compiler, const KernelSource& source,
                                       const std::vector<SlottedChange>& group, bool arguments) {
  std::vector<ChangeBuild> builds;
  build_into(compiler, source, group, 0, arguments && may_be_argument(source, group), builds);
  return builds;
}

bool choose_change(std::vector<std::byte>& binary, std::uint32_t number) {
  constexpr std::uint32_t magic_of_spirv = 0x07230203;
  std::uint32_t magic = 0;
  std::memcpy(&magic, binary.data(), std::min(sizeof magic, binary.size()));
  const std::size_t at =
      magic == magic_of_spirv ? place_in_spirv(binary) : place_in_library(binary);
  return put(binary, at, &number, sizeof number);
}

std::string text_with_marks(const KernelSource& source, const std::vector<ChangeSlot>& slots,
                            const std::vector<char>& without) {
  // What begins last at a place is the innermost one; what ends at a place does so before others
  // begin.
  struct Piece {
    std::size_t at;
    bool begins;
    std::size_t length;
    std::string text;
  };
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < slots.size(); ++i) {
    const auto& [kind, start, end] = slots[i];
    if (without[i] != 0) continue;
    const bool expression = kind == ChangeSlot::Kind::expression;
    const std::string mark = fmt::format("GRETA_HOST_MARK({})", i);
    if (kind == ChangeSlot::Kind::insertion) {
      pieces.push_back({start, true, 0, mark + ";"});
      continue;
    }
    pieces.push_back(
        {start, true, end - start, (expression ? "(" : "{ ") + mark + (expression ? ", " : "; ")});
    pieces.push_back({end, false, end - start, expression ? ")" : " }"});
  }
  std::stable_sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    if (a.at != b.at) return a.at < b.at;
    if (a.begins != b.begins) return b.begins;
    return a.begins ? a.length > b.length : a.length < b.length;
  });
  std::string text;
  std::size_t done = 0;
  for (const Piece& piece : pieces) {
    text += source.text.substr(done, piece.at - done) + piece.text;
    done = piece.at;
  }
  return with_number_of_hip(text + source.text.substr(done));
}

bool choose_marks(std::vector<std::byte>& library, const void* marks) {
  const std::size_t at = place_in_library(library);
  return at > 0 && put(library, at + sizeof(std::uint32_t), &marks, sizeof marks);
}

}  // namespace greta::tuner
