#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "kernels/model/operation.hpp"
#include "tuner/diagnose/diagnosis.hpp"

namespace greta::tuner::cli {

/// Adds --keep-failed DIR to a command.
CLI::Option* add_keep_failed(CLI::App& command, std::filesystem::path& folder);

/// Returns the folder in which a command keeps the failures of an operation: the given one, that of
/// described kernels, or none. Throws CommandError if it can't be made.
std::filesystem::path folder_of_failures(const std::filesystem::path& given, bool described);

/// Returns the cases in a folder, which is one or has some. Throws CommandError if there are none.
std::vector<std::filesystem::path> kept_cases(const std::filesystem::path& folder);

/// Diagnoses a case. Adds its description to the known operations if it has one.
Result<Diagnosis> diagnose_kept(const std::filesystem::path& folder,
                                const DiagnosisOptions& options = {});

/// Diagnoses what a command keeps, and says where.
class KeptCases {
 public:
  /// `folder` may be empty: nothing is kept.
  explicit KeptCases(std::filesystem::path folder);
  /// Tells each case that is new, with its first cause, on standard error. Described kernels'
  /// descriptions are added to their cases. Returns their diagnoses.
  std::vector<Diagnosis> tell();

 private:
  std::filesystem::path folder_;
  std::set<std::pair<std::filesystem::path, std::filesystem::file_time_type>> before_;
};

}  // namespace greta::tuner::cli
