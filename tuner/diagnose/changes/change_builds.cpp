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

bool is_barrier(const SourceChange& change) {
  return change.length == 0 && change.by.ends_with(";");
}

/// Whether a slot can have a change's text in place of its own.
bool holds(const ChangeSlot& slot, const SourceChange& change) {
  const std::size_t end = change.start + change.length;
  if (is_barrier(change))
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
       at = text.find('\n', at + begin.size()))
    text.replace(at, 1, begin);
  return begin + text + "\n#line 1\n";
}

/// Returns the text of a slot with all its versions.
std::string slot_text(const KernelSource& source, const std::vector<const SlottedChange*>& all) {
  const ChangeSlot& slot = all.front()->slot;
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

/// Adds the number to a HIP source, as a variable that may change.
std::string with_number_of_hip(const std::string& text) {
  return fmt::format(
             "__attribute__((used)) unsigned greta_host_change[3] = {{{}U, {}U, 0}};\n"
             "#define GRETA_HOST_CHOSEN greta_host_change[2]\n",
             mark_of_number[0], mark_of_number[1]) +
         text;
}

/// Adds the number to a GLSL source, as the last of the arguments.
std::string with_number_of_glsl(std::string text) {
  static const std::regex arguments("push_constant[^{}]*\\{([^}]*)\\}\\s*(\\w+)\\s*;"),
      main("void\\s+main\\s*\\(\\s*\\)\\s*\\{");
  std::smatch found_main, found;
  if (!std::regex_search(text, found_main, main) || !std::regex_search(text, found, arguments))
    return "";
  const std::string name = found[2];
  text.insert(static_cast<std::size_t>(found_main.position() + found_main.length()),
              fmt::format(" GRETA_HOST_CHOSEN = {}.greta_host_number; ", name));
  text.insert(static_cast<std::size_t>(found.position(1) + found.length(1)),
              "  uint greta_host_number;\n");
  const std::size_t version = text.find("#version");
  const std::size_t line = version == std::string::npos ? 0 : text.find('\n', version) + 1;
  text.insert(line, "uint greta_host_change;\n#define GRETA_HOST_CHOSEN greta_host_change\n");
  return text;
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
                std::vector<SlottedChange> group, int depth, std::vector<ChangeBuild>& builds) {
  constexpr int most_passes = 30, deepest = 4;  // glslang reports one error at a time
  for (int pass = 0; pass < most_passes && !group.empty(); ++pass) {
    KernelSource changed = source;
    changed.text = text_with_changes(source, group);
    if (changed.text.empty()) return;
    auto compiled = compiler.compile(changed);
    if (compiled && !compiled->code_object.empty()) {
      ChangeBuild& made = builds.emplace_back();
      for (const SlottedChange& one : group) made.numbers.push_back(one.number);
      made.code_object = std::move(compiled->code_object);
      return;
    }
    const std::string log = compiled ? "" : compiled.failure().message + compiled.failure().log;
    const auto named = named_changes(log);
    const auto erased =
        std::erase_if(group, [&](const SlottedChange& one) { return named.contains(one.number); });
    if (erased == 0) break;
  }
  if (group.size() < 2 || depth == deepest) return;
  const auto middle = group.begin() + static_cast<std::ptrdiff_t>(group.size() / 2);
  build_into(compiler, source, {group.begin(), middle}, depth + 1, builds);
  build_into(compiler, source, {middle, group.end()}, depth + 1, builds);
}

}  // namespace

std::vector<std::vector<SlottedChange>> change_groups(const std::vector<SourceChange>& changes,
                                                      const std::vector<std::uint32_t>& numbers,
                                                      const std::vector<ChangeSlot>& slots,
                                                      std::size_t most) {
  std::vector<std::vector<SlottedChange>> groups;
  std::vector<std::vector<ChangeSlot>> used;  // of each group
  for (std::size_t i = 0; i < changes.size(); ++i) {
    const ChangeSlot* best = nullptr;
    for (const ChangeSlot& slot : slots) {
      if (holds(slot, changes[i]) &&
          (best == nullptr || slot.end - slot.start < best->end - best->start))
        best = &slot;
    }
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

std::string text_with_changes(const KernelSource& source, const std::vector<SlottedChange>& group) {
  std::map<std::pair<std::size_t, std::size_t>, std::vector<const SlottedChange*>> slots;
  for (const SlottedChange& one : group) slots[{one.slot.start, one.slot.end}].push_back(&one);
  std::string text = source.text;
  for (auto slot = slots.rbegin(); slot != slots.rend(); ++slot) {
    const auto [start, end] = slot->first;
    text.replace(start, end - start, slot_text(source, slot->second));
  }
  return source.language == Language::glsl ? with_number_of_glsl(std::move(text))
                                           : with_number_of_hip(text);
}

std::vector<ChangeBuild> build_changes(TargetCompiler& compiler, const KernelSource& source,
                                       const std::vector<SlottedChange>& group) {
  std::vector<ChangeBuild> builds;
  build_into(compiler, source, group, 0, builds);
  return builds;
}

bool choose_change(std::vector<std::byte>& library, std::uint32_t number) {
  const auto* const mark = reinterpret_cast<const std::byte*>(mark_of_number.data());
  const auto found =
      std::search(library.begin(), library.end(), mark, mark + sizeof mark_of_number);
  const auto at = static_cast<std::size_t>(found - library.begin()) + sizeof mark_of_number;
  if (at + sizeof number > library.size()) return false;
  std::memcpy(&library[at], &number, sizeof number);
  return true;
}

}  // namespace greta::tuner
