#include "tuner/diagnose/changes/change_builds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <regex>
#include <set>
#include <sstream>

namespace greta::tuner {
namespace {

constexpr std::array<std::uint32_t, 2> mark_of_number{0x7c31e95bU, 0xd6408f2aU};
// The line of a change's text in the compiler's messages is this and a multiple of its number:
// assemblers count the lines of their text on from it.
constexpr std::uint32_t first_line = 1000000, lines_of_change = 64;
// The SpecIds of the number, and of the two words of its address; glslang takes up to 2047.
constexpr std::uint32_t number_id = 1999, low_id = 1997, high_id = 1998;

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
  const std::string begin = fmt::format("\n#line {}\n", first_line + number * lines_of_change);
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

/// Adds to a HIP source the addresses of the number, which may change, and of marks.
std::string with_number_of_hip(const std::string& text) {
  return fmt::format(
      "struct GretaHostChange {{ unsigned mark[2]; const unsigned* number; unsigned char* marks; "
      "}};\n"
      "__attribute__((used)) GretaHostChange greta_host_change = {{{{{}U, {}U}}, 0, 0}};\n"
      "#define GRETA_HOST_CHOSEN (*greta_host_change.number)\n"
      "#define GRETA_HOST_MARK(i) (greta_host_change.marks[i] = 1)\n#line 1\n{}",
      mark_of_number[0], mark_of_number[1], text);
}

constexpr std::string_view main_of_glsl = "void main() {";

/// Adds the number to a GLSL source: read from an address, or as a specialization constant.
std::string with_number_of_glsl(std::string text, bool as_constant) {
  std::string declaration =
      fmt::format("layout(constant_id = {}) const uint greta_host_change = 0;\n", number_id);
  if (!as_constant) {
    const std::size_t main = text.find(main_of_glsl) + main_of_glsl.size();
    text.insert(main,
                " greta_host_change = GretaHostNumber(uvec2(greta_host_low, "
                "greta_host_high)).value;");
    declaration = fmt::format(
        "#extension GL_EXT_buffer_reference : require\n"
        "#extension GL_EXT_buffer_reference_uvec2 : require\n"
        "layout(buffer_reference, std430, buffer_reference_align = 4) readonly buffer "
        "GretaHostNumber {{ uint value; }};\n"
        "layout(constant_id = {}) const uint greta_host_low = 0;\n"
        "layout(constant_id = {}) const uint greta_host_high = 0;\n"
        "uint greta_host_change;\n",
        low_id, high_id);
  }
  const std::size_t version = text.find("#version");
  const std::size_t line = version == std::string::npos ? 0 : text.find('\n', version) + 1;
  text.insert(line, declaration + "#define GRETA_HOST_CHOSEN greta_host_change\n");
  return text;
}

bool put(std::vector<std::byte>& binary, std::size_t at, const void* data, std::size_t bytes) {
  if (at == 0 || at + bytes > binary.size()) return false;
  std::memcpy(&binary[at], data, bytes);
  return true;
}

bool is_spirv(const std::vector<std::byte>& binary) {
  constexpr std::uint32_t magic_of_spirv = 0x07230203;
  std::uint32_t magic = 0;
  std::memcpy(&magic, binary.data(), std::min(sizeof magic, binary.size()));
  return magic == magic_of_spirv;
}

/// Sets a specialization constant's value. Returns false if there is none.
bool put_constant(std::vector<std::byte>& binary, std::uint32_t wanted, std::uint32_t value) {
  constexpr std::uint32_t decorate = 71, constant = 50, spec_id = 1, header_words = 5;
  std::vector<std::uint32_t> words(binary.size() / sizeof(std::uint32_t));
  std::memcpy(words.data(), binary.data(), words.size() * sizeof(std::uint32_t));
  std::uint32_t id = 0;
  for (std::size_t at = header_words; at + 3 < words.size(); at += std::max(1U, words[at] >> 16)) {
    const std::uint32_t code = words[at] & 0xFFFF;
    if (code == decorate && words[at + 2] == spec_id && words[at + 3] == wanted) id = words[at + 1];
    if (code == constant && id != 0 && words[at + 2] == id)
      return put(binary, (at + 3) * sizeof(std::uint32_t), &value, sizeof value);
  }
  return false;
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

/// Returns the numbers of changes that a compiler's messages name as errors.
std::set<std::uint32_t> named_changes(const std::string& log) {
  static const std::regex line(":(\\d{7,8}):");
  std::set<std::uint32_t> numbers;
  std::istringstream lines(log);
  for (std::string message; std::getline(lines, message);) {
    std::smatch found;
    if (message.find(": note:") != std::string::npos || !std::regex_search(message, found, line))
      continue;
    const auto at = std::stoul(found[1]);
    if (at >= first_line)
      numbers.insert(static_cast<std::uint32_t>(at - first_line) / lines_of_change);
  }
  return numbers;
}

void build_into(TargetCompiler& compiler, const KernelSource& source,
                std::vector<SlottedChange> group, int depth, bool as_constant,
                std::vector<ChangeBuild>& builds) {
  constexpr int most_passes = 12, deepest = 4;  // a compiler may report an unknown name only once
  for (int pass = 0; pass < most_passes && !group.empty(); ++pass) {
    KernelSource changed = source;
    changed.text = text_with_changes(source, group, as_constant);
    if (source.language == Language::glsl) changed.options.emplace_back("-ferror-limit=0");
    auto compiled = compiler.compile(changed);
    if (compiled && !compiled->code_object.empty()) {
      ChangeBuild& made = builds.emplace_back();
      for (const SlottedChange& one : group) made.numbers.push_back(one.number);
      made.code_object = std::move(compiled->code_object);
      made.as_constant = as_constant;
      return;
    }
    const std::string log = compiled ? "" : compiled.failure().message + compiled.failure().log;
    const auto named = named_changes(log);
    const auto erased =
        std::erase_if(group, [&](const SlottedChange& one) { return named.contains(one.number); });
    if (erased > 0) continue;
    if (as_constant || source.language != Language::glsl) break;
    as_constant = true;  // a version may have to be a constant, as an array's extent
  }
  if (group.size() < 2 || depth == deepest) return;
  const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
  build_into(compiler, source, {group.begin(), middle}, depth + 1, as_constant, builds);
  build_into(compiler, source, {middle, group.end()}, depth + 1, as_constant, builds);
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
                              bool as_constant) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const SlottedChange*>> slots;
  for (const SlottedChange& one : group) slots[{one.slot.start, one.slot.end}].push_back(&one);
  std::string text = source.text;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    const auto [start, end] = slot->first;
    text.replace(start, end - start, slot_text(source, slot->second));
  }
  return source.language == Language::glsl ? with_number_of_glsl(std::move(text), as_constant)
                                           : with_number_of_hip(text);
}

bool has_barrier(const std::string& text, const SourceChange& change, const ChangeSlot& slot) {
  constexpr std::string_view barrier = "arrier";
  return change.by.find(barrier) != std::string::npos ||
         std::string_view(text).substr(slot.start, slot.end - slot.start).find(barrier) !=
             std::string_view::npos;
}

std::vector<ChangeBuild> build_changes(TargetCompiler& compiler, const KernelSource& source,
                                       const std::vector<SlottedChange>& group) {
  std::vector<ChangeBuild> builds;
  const bool as_constant = source.language == Language::glsl &&
                           (source.text.find(main_of_glsl) == std::string::npos ||
                            std::any_of(group.begin(), group.end(), [&](const SlottedChange& one) {
                              return has_barrier(source.text, *one.change, one.slot);
                            }));
  build_into(compiler, source, group, 0, as_constant, builds);
  return builds;
}

bool choose_change(std::vector<std::byte>& spirv, std::uint32_t number) {
  return put_constant(spirv, number_id, number);
}

bool put_address_of_number(std::vector<std::byte>& binary, std::uint64_t address) {
  constexpr int word_bits = 32;
  if (!is_spirv(binary)) return put(binary, place_in_library(binary), &address, sizeof address);
  return put_constant(binary, low_id, static_cast<std::uint32_t>(address)) &&
         put_constant(binary, high_id, static_cast<std::uint32_t>(address >> word_bits));
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
  return at > 0 && put(library, at + sizeof(std::uint64_t), &marks, sizeof marks);
}

}  // namespace greta::tuner
