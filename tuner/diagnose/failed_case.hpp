#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "kernels/catalog.hpp"
#include "kernels/model/adversarial.hpp"
#include "tuner/compile/kernel_case.hpp"
#include "tuner/diagnose/probe.hpp"
#include "tuner/diagnose/responses.hpp"

namespace greta::tuner {

/// One run of a candidate: what its outputs and its workspace contained before, and the outputs.
struct KeptRun {
  std::uint32_t outputs_before = 0;
  std::uint32_t workspace_before = 0;
  std::vector<HostTensor> outputs;  ///< of all tensors whose role is not input, in order

  /// Whether memory was the same before both runs.
  bool begins_as(const KeptRun& other) const {
    return outputs_before == other.outputs_before && workspace_before == other.workspace_before;
  }
};

/// Runs under other conditions, each with what one needs to know of memory that is read before it
/// is written. Empty: not run, or impossible on the device.
struct OtherRuns {
  /// Run after another run, whose results are still in the workspace.
  std::vector<HostTensor> after_another;
  /// Run with finite numbers in place of NaN around the operands; probes are compared with it.
  std::vector<HostTensor> with_finite_guards;
  /// Runs of a build in which local variables begin with a pattern, two, and with 0, two.
  std::vector<std::vector<HostTensor>> with_set_registers;
};

/// What sanitizers reported of a candidate, each in a line; empty: nothing.
struct SanitizerFindings {
  bool ran = false;    ///< whether the candidate ran under sanitizers
  std::string race;    ///< of the race detector
  std::string access;  ///< of AddressSanitizer or UndefinedBehaviorSanitizer
};

/// Files of which kernels are made: names within kernels/templates or the folder of a description,
/// and texts.
using SourceFiles = std::map<std::string, std::string>;

/// A version of a kernel that may be correct.
struct KnownGood {
  std::string name;   ///< "the built-in templates"; empty: there is none
  SourceFiles files;  ///< those that the kernel has otherwise, or not at all
};

/// A candidate whose results are wrong, with everything that is needed to examine them elsewhere.
struct FailedCase {
  KernelCase kernel;  ///< compiled kernels, launches, inputs, and expected elements
  std::string device;
  std::string message;  ///< why the check failed
  std::uint64_t seed = 0;
  InputStyle style = InputStyle::plain;
  std::vector<std::string> sources;  ///< texts of the kernels, each with a comment on its launch
  std::uint32_t workgroup = 0;       ///< threads of the last launch
  std::vector<Division> divisions;   ///< extents that the kernels divide (Variant::divisions)
  std::vector<KeptRun> runs;         ///< the first ones are equal but for what a race changes
  OtherRuns others;
  std::vector<Probe> probes;        ///< runs on changed inputs
  std::vector<Response> responses;  ///< runs with impulses, if there were any; not stored
  SanitizerFindings sanitizers;     ///< of a kernel on hip-host
  /// Of a described kernel: its description, one of the files.
  std::string description;
  SourceFiles files;  ///< those that its kernels are made of; of a described kernel all
  KnownGood known_good;
};

/// The file by which the folder of a failed case is known.
inline constexpr auto failure_file = "failure.json";

/// The name of a candidate's folder among others: the operation's, a dash, and a hash.
std::string name_of_failed_case(const std::string& problem, const std::string& config);

/// Returns a kernel's text after a comment on its launch (read_kept_source()).
std::string kept_source(const KernelSource& source);

/// The file of a case with the source of a kernel: "kernel-0.hip", "kernel-0.comp".
std::string kept_source_file(std::size_t kernel, Language language);

/// Writes a case into its folder, in the form of docs/compile.md with `failure.json` beside it
/// (docs/diagnose.md). Fails like write_case().
Result<void> write_failed_case(const FailedCase& written, const std::filesystem::path& folder);

/// Whether results differ between runs on the same inputs, or the race detector found a race.
bool shows_race(const FailedCase& failed);

/// Adds a described kernel's files to a case, so that other machines know its operation, and a
/// version that may be correct. `name` is the description's. Throws Error with `io`.
void add_description(const std::filesystem::path& folder, const std::string& name,
                     const SourceFiles& files, const KnownGood& known_good);

/// Adds reports of sanitizers to a case. Throws Error.
void add_findings(const std::filesystem::path& folder, const SanitizerFindings& findings);

/// Returns the description of a case's kernel; an empty path if GRETA's catalog has its operation.
/// Fails like read_failed_case().
Result<std::filesystem::path> description_of(const std::filesystem::path& folder);

/// Reads a case. Fails with `io` for unreadable files, and with `invalid_argument` for a folder
/// that is no such case, or whose problem the catalog does not know.
Result<FailedCase> read_failed_case(const Catalog& catalog, const std::filesystem::path& folder);

}  // namespace greta::tuner
