#include "tuner/diagnose/changes/case_changes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>

#include "tuner/diagnose/changes/executed_slots.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"

namespace greta::tuner {
namespace {

constexpr std::size_t most_numbers = 31000;  // of a kernel's changes with a slot
constexpr std::size_t most_others = 2000;    // without one

/// Returns the words by which a change is known in all kernels: what is changed, with the lines
/// around.
std::string words_of(const std::string& text, const SourceChange& change) {
  constexpr int lines_around = 3;
  std::size_t begin = change.start, end = change.start + change.length;
  for (int i = 0; i <= lines_around && begin > 0; ++i) begin = text.rfind('\n', begin - 1) + 1;
  for (int i = 0; i <= lines_around && end < text.size(); ++i)
    end = std::min(text.find('\n', end), text.size() - 1) + 1;
  return fmt::format("{} {} {}\n{}", change.start - begin, change.length, change.by,
                     std::string_view(text).substr(begin, end - begin));
}

}  // namespace

CaseChanges::CaseChanges(const FailedCase& failed, const BuiltCase& built,
                         std::chrono::steady_clock::time_point end)
    : failed_(failed) {
  for (std::size_t i = 0; i < failed.sources.size(); ++i) {
    const KernelSource source = read_kept_source(failed.sources[i], failed.kernel.language).value();
    texts_.push_back(source.text);
    slots_.push_back(slots_of(source.text, source.entry));
    add_changes(i, changes_of(texts_.back(), source.entry));
  }
  leave_out_unexecuted(executed_slots(failed, built, slots_, end));
  std::stable_sort(changes_.begin(), changes_.end(), [](const auto& a, const auto& b) {
    return std::pair(a.has_slot(), a.change.worth) > std::pair(b.has_slot(), b.change.worth);
  });
}

std::size_t CaseChanges::most_of_group() const {
  constexpr std::size_t few = 60, many = 150;
  return failed_.kernel.language == Language::glsl ? few : many;
}

void CaseChanges::add_changes(std::size_t kernel, std::vector<SourceChange> changes) {
  weigh_barriers(changes);
  const std::size_t before = changes_.size();
  std::vector<SourceChange> others;  // without a slot
  std::size_t count = 0;
  for (SourceChange& change : changes) {
    if (count == most_numbers) break;
    const ChangeSlot* const slot = slot_of(change, slots_[kernel]);
    if (slot == nullptr) {
      if (others.size() < most_others) others.push_back(std::move(change));
    } else {
      const auto place = static_cast<std::size_t>(slot - slots_[kernel].data());
      add_change({kernel, std::move(change), {}, place}, before);
      ++count;
    }
  }
  for (SourceChange& change : others)
    add_change({kernel, std::move(change), {}, KernelChange::no_slot}, before);
}

/// Adds a change, or adds it to that of the same lines of an earlier kernel, whose changes are
/// before a place.
void CaseChanges::add_change(KernelChange one, std::size_t before) {
  const std::size_t words = std::hash<std::string>()(words_of(texts_[one.kernel], one.change));
  const auto [known, is_new] = known_.try_emplace(words, changes_.size());
  if (is_new || known->second >= before || changes_[known->second].is_in(one.kernel)) {
    changes_.push_back(std::move(one));
  } else {
    changes_[known->second].others.emplace_back(one.kernel, std::move(one.change));
  }
}

bool CaseChanges::is_executed(const std::vector<std::vector<char>>& executed, std::size_t kernel,
                              const SourceChange& change) const {
  const auto& slots = slots_[kernel];
  const ChangeSlot* const slot = slot_of(change, slots);
  return slot == nullptr || executed[kernel][static_cast<std::size_t>(slot - slots.data())] != 0;
}

void CaseChanges::leave_out_unexecuted(const std::vector<std::vector<char>>& executed) {
  std::erase_if(changes_, [&](const KernelChange& one) {
    return !is_executed(executed, one.kernel, one.change) &&
           std::none_of(one.others.begin(), one.others.end(), [&](const auto& other) {
             return is_executed(executed, other.first, other.second);
           });
  });
}

void CaseChanges::weigh_barriers(std::vector<SourceChange>& changes) const {
  const bool found_none = failed_.sanitizers.ran && failed_.sanitizers.race.empty();
  const double more = shows_race(failed_) ? worth_of_race : found_none ? -worth_of_race : 0;
  for (SourceChange& change : changes) {
    if (change.kind == "missing barrier") change.worth += more;
  }
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.worth > b.worth; });
}

CaseChanges::KindOfGroup CaseChanges::kind_of_group(const KernelChange& one) const {
  const ChangeSlot* const slot = slot_of(one.change, slots_[one.kernel]);
  const bool macro = slot != nullptr && slot->kind == ChangeSlot::Kind::macro;
  const bool barrier = slot != nullptr && has_barrier(texts_[one.kernel], one.change, *slot);
  std::vector<std::size_t> kernels{one.kernel};
  for (const auto& [kernel, change] : one.others) kernels.push_back(kernel);
  return {std::move(kernels), macro ? 2 : barrier ? 1 : 0};
}

std::vector<ChangeGroup> CaseChanges::groups_of(const std::vector<std::size_t>& places) {
  std::map<KindOfGroup, std::vector<std::size_t>> kinds;
  for (const std::size_t i : places) {
    if (i < most_numbers) kinds[kind_of_group(changes_[i])].push_back(i);
  }
  std::vector<std::pair<std::ptrdiff_t, ChangeGroup>> placed;
  for (const auto& [kind, members] : kinds) {
    std::vector<SourceChange> changes;
    std::vector<std::uint32_t> numbers;
    for (const std::size_t i : members) {
      changes.push_back(changes_[i].change);
      numbers.push_back(static_cast<std::uint32_t>(i + 1));
    }
    kept_changes_.push_back(std::make_unique<std::vector<SourceChange>>(std::move(changes)));
    for (auto& slotted : change_groups(*kept_changes_.back(), numbers, slots_[kind.first.front()],
                                       most_of_group())) {
      ChangeGroup group;
      group.kernel = kind.first.front();
      group.changes = std::move(slotted);
      add_others(kind.first, group);
      const auto first = std::find(places.begin(), places.end(), group.changes.front().number - 1);
      placed.emplace_back(first - places.begin(), std::move(group));
    }
  }
  std::stable_sort(placed.begin(), placed.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<ChangeGroup> groups;
  for (auto& [place, group] : placed) groups.push_back(std::move(group));
  return groups;
}

void CaseChanges::add_others(const std::vector<std::size_t>& kernels, ChangeGroup& group) const {
  for (std::size_t k = 1; k < kernels.size(); ++k) {
    KernelGroup& other = group.others.emplace_back();
    other.kernel = kernels[k];
    for (const SlottedChange& one : group.changes) {
      const SourceChange& change = changes_[one.number - 1].others[k - 1].second;
      const ChangeSlot* const slot = slot_of(change, slots_[kernels[k]]);
      if (slot != nullptr) other.changes.push_back({one.number, &change, *slot});
    }
  }
}

}  // namespace greta::tuner
