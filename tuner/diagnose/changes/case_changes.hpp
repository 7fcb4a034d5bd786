#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tuner/diagnose/changes/change_slots.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/changes/group_search.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// The changes of a case's kernels that may mend its fault.
class CaseChanges {
 public:
  /// How much more likely a missing barrier is if a race shows, as a logarithm.
  static constexpr double worth_of_race = 6;

  /// Finds them. Those of parts that are not executed are left out, as far as these are known by
  /// the given time.
  CaseChanges(const FailedCase& failed, const BuiltCase& built,
              std::chrono::steady_clock::time_point end);
  // Groups refer to its changes.
  CaseChanges(const CaseChanges&) = delete;
  CaseChanges& operator=(const CaseChanges&) = delete;

  /// Returns all changes, the most likely first, but those that can be in no group last.
  const std::vector<KernelChange>& all() const { return changes_; }
  /// Returns a kernel's source, without the comment on its launch.
  const std::string& text(std::size_t kernel) const { return texts_[kernel]; }
  /// Returns groups of the changes with these places among all, in their order. A change's number
  /// is its place, from 1 on. Barriers are apart from other changes, whose kernels in GLSL
  /// need be compiled only once (build_changes()), and so are macros.
  std::vector<ChangeGroup> groups_of(const std::vector<std::size_t>& places);

 private:
  /// What the changes of a group have in common: their kernels, and how they are compiled.
  using KindOfGroup = std::pair<std::vector<std::size_t>, int>;

  std::size_t most_of_group() const;
  void add_changes(std::size_t kernel, std::vector<SourceChange> changes);
  void add_change(KernelChange one, std::size_t before);
  bool is_executed(const std::vector<std::vector<char>>& executed, std::size_t kernel,
                   const SourceChange& change) const;
  void leave_out_unexecuted(const std::vector<std::vector<char>>& executed);
  void weigh_barriers(std::vector<SourceChange>& changes) const;
  KindOfGroup kind_of_group(const KernelChange& one) const;
  void add_others(const std::vector<std::size_t>& kernels, ChangeGroup& group) const;

  const FailedCase& failed_;
  std::vector<std::string> texts_;
  std::vector<std::vector<ChangeSlot>> slots_;                            ///< of each text
  std::vector<std::unique_ptr<std::vector<SourceChange>>> kept_changes_;  ///< those of groups
  std::vector<KernelChange> changes_;
  std::unordered_map<std::size_t, std::size_t> known_;  ///< changes by the hash of their words
};

}  // namespace greta::tuner
