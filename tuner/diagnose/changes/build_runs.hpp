#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/device/device.hpp"
#include "tuner/compile/run_case.hpp"
#include "tuner/diagnose/changes/case_reduction.hpp"
#include "tuner/diagnose/changes/change_builds.hpp"
#include "tuner/diagnose/changes/change_effects.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {

class SharedFile;

/// A case's kernels without a change, compiled for the device on which changes are tried.
struct BuiltCase {
  std::string device;  ///< its id
  std::string architecture;
  std::vector<std::vector<std::byte>> unchanged;  ///< code objects
  std::chrono::milliseconds run_time{0};          ///< of a run; 0: not known
  CaseReduction reduction;                        ///< with which most changes show as wrong

  /// Writes the device and the kernels.
  void write(const SharedFile& file) const;
  /// Writes what was found out by runs.
  void write_runs(const SharedFile& file) const;
  /// Reads what write() wrote of this many kernels, and what write_runs() wrote if it did so to the
  /// end. Throws Error if kernels lack.
  void read(SharedFile& file, std::size_t kernels);
};

/// A build of a kernel.
struct KernelBuild {
  std::size_t kernel = 0;
  ChangeBuild build;
};

/// Runs a case with the changes of builds, one at a time, in this process: first with few
/// workgroups (CaseReduction), and with all if their results are correct.
class BuildRuns {
 public:
  /// Opens the device. Throws Error.
  BuildRuns(const FailedCase& failed, const BuiltCase& built,
            const std::vector<KernelBuild>& builds);

  std::chrono::milliseconds time{3000};  ///< that a run with a change may take

  /// Whether the unchanged kernels fail as they did. The first run of a process takes longer than
  /// others, so that no change may be judged by it.
  bool fails_unchanged(Deadline deadline);
  /// Sets the time by a run of the unchanged kernels.
  void measure();
  /// Returns correct_here, wrong or hangs.
  ChangeOutcome outcome_of(std::uint32_t number);
  /// Returns what the change of outcome_of(), with which results are wrong, does to them.
  ChangeEffect last_effect();

 private:
  void reduce();
  void run_all();
  ChangeOutcome result_of(std::uint32_t number, Deadline deadline);

  KernelCase run_;
  const CaseReduction& reduction_;
  std::vector<Grid> grids_;                      ///< of all workgroups
  std::vector<std::vector<Expected>> expected_;  ///< with all workgroups
  std::vector<std::size_t> constants_;           ///< kernels in whose code objects the number is
  std::unique_ptr<Device> device_;
  std::unique_ptr<LoadedCase> loaded_;
  std::optional<EffectJudge> judge_;  ///< by the unchanged kernels' results
};

}  // namespace greta::tuner
