#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/backend.hpp"
#include "tuner/compile/run_case.hpp"
#include "tuner/compile/target_compiler.hpp"
#include "tuner/diagnose/changes/case_reduction.hpp"
#include "tuner/diagnose/changes/source_changes.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// A change of one of a case's kernels, and of the others that have the same lines, as of a file
/// that all of them include.
struct KernelChange {
  std::size_t kernel = 0;
  SourceChange change;
  std::vector<std::pair<std::size_t, SourceChange>> others;  ///< kernels and their changes
  static constexpr std::size_t no_slot = static_cast<std::size_t>(-1);
  std::size_t slot = no_slot;  ///< the place of its slot among the kernel's: it may be in a group

  bool has_slot() const { return slot != no_slot; }

  bool is_in(std::size_t other) const {
    return other == kernel || (!others.empty() && others.back().first == other);
  }
};

/// What a trial of a change gave.
enum class ChangeOutcome : unsigned char {
  untried,
  refused,       ///< by the compiler
  same,          ///< the kernel of an earlier change, or the unchanged one
  wrong,         ///< results
  hangs,         ///< the device is lost
  unclear,       ///< in a group, where the unchanged kernel is correct: to be tried alone
  correct_here,  ///< with the case's operands; others could not be drawn
  correct,       ///< with other operands, too
};

/// Returns what a run of a case (run_case()) says of its change: correct_here, wrong or hangs. What
/// a driver refuses is wrong.
ChangeOutcome outcome_of_run(const Result<std::string>& wrong);

/// Return why changes can't be tried: one line.
std::string unchanged_is_correct();
std::string too_slow(Deadline most_time);

/// Returns what a kept source says of itself: its text, entry, workgroup and options.
Result<KernelSource> read_kept_source(const std::string& kept, Language language);

/// Returns the first CPU device of this machine that runs a case's kernels: one of its
/// architecture, or hip-host's of the same name. Fails with `unavailable` and a line that says what
/// is missing.
Result<DeviceInfo> device_for_changes(const KernelCase& run);

/// Compiles and runs changed kernels of a case in this process.
class ChangeTrials {
 public:
  /// A run that lasts so long hangs.
  static constexpr Deadline most_time_of_run = std::chrono::seconds(15);

  /// Opens the device (device_for_changes()), and compiles the unchanged kernels if their code
  /// objects are not given. Throws Error.
  ChangeTrials(const Catalog& catalog, const FailedCase& failed,
               Deadline most_time = most_time_of_run,
               std::vector<std::vector<std::byte>> unchanged = {});

  /// Returns the device's id.
  std::string device() const { return device_->info().id(); }
  const std::string& architecture() const { return run_.architecture; }
  const std::vector<std::vector<std::byte>>& code_objects() const { return code_objects_; }

  /// Returns what the unchanged kernels do here, in the first of so many runs that fails.
  ChangeOutcome outcome_unchanged(int most_runs = 6);  // as races may be correct by chance
  /// Returns the workgroups that suffice to show the fault.
  CaseReduction reduction() const;
  ChangeOutcome outcome_of(const KernelChange& change);
  /// Does the same for other texts of all kernels, also of some that it knows. Results that are
  /// correct are those of `runs` runs.
  ChangeOutcome outcome_of(const std::vector<std::string>& texts, int runs);
  /// Runs the unchanged kernels on other operands, in the order of the case's first buffers.
  /// Returns the contents of the written buffers. Fails like LoadedCase::contents().
  Result<std::vector<std::vector<std::byte>>> contents_with(
      const std::vector<std::vector<std::byte>>& operands);

 private:
  ChangeOutcome outcome_with(const KernelCase& run);
  bool draw_others();
  /// Runs the kernels that the case has now so often, and with other operands.
  ChangeOutcome confirmed(int runs);
  /// Compiles another text of a kernel; empty if it does not compile.
  std::vector<std::byte> code_of(std::size_t kernel, std::string text);

  const Catalog& catalog_;
  Deadline most_time_;
  KernelCase run_;
  std::vector<KernelCase> others_;  ///< with other operands
  bool no_others_ = false;
  std::vector<KernelSource> sources_;
  std::vector<std::vector<std::byte>> code_objects_;  ///< of the unchanged sources
  std::unique_ptr<TargetCompiler> compiler_;
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedCase> loaded_;  ///< of contents_with()
  std::set<std::string> known_;         ///< hashes of code objects that were run
};

}  // namespace greta::tuner
