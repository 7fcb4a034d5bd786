#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tuner/diagnose/comparison/comparison.hpp"
#include "tuner/diagnose/judge.hpp"

namespace greta::tuner {

/// What is wrong with a failed candidate.
struct Diagnosis {
  std::string problem, config, device, message;
  std::vector<std::string> places;  ///< where the errors lie, a fact in each line
  std::vector<std::string> facts;   ///< what was measured of the errors (facts_of_errors())
  std::vector<std::pair<std::string, std::string>> maps;  ///< of each wrong output: name and text
  std::vector<std::string> images;                        ///< files in the case's folder
  std::vector<Cause> causes;                              ///< the most probable first
  std::size_t tried = 0;                                  ///< number of hypotheses
  bool hurried = false;                                   ///< there was no time for all hypotheses
  std::string search;  ///< what a search for a change of the source gave; empty: none
  std::optional<SourceComparison> comparison;  ///< with a known-good version, if there was one

  /// Whether the first cause explains most of the wrong elements.
  bool is_sure() const;
  /// Whether it predicts almost all wrong elements, so that sanitizers would tell nothing more.
  bool is_precise() const;
};

/// How a case is diagnosed.
struct DiagnosisOptions {
  double seconds = 30;  ///< time limit of the hypotheses
  /// Time limit of the search for a change of the source (search_change()); 0: none. There is none
  /// either if a comparison says which lines are wrong.
  double change_seconds = 0;
  bool compares = false;               ///< with a known-good version
  std::filesystem::path known_good{};  ///< this version (known_good_at()); empty: the case's own
};

/// Reads the case of a folder, examines it, and writes `diagnosis.txt` and an image of each wrong
/// output beside it. Fails like read_failed_case() and known_good_at(), and with `invalid_argument`
/// for a case that can't be examined.
Result<Diagnosis> diagnose_folder(const Catalog& catalog, const std::filesystem::path& folder,
                                  const DiagnosisOptions& options = {});

/// Returns the diagnosis as text of several lines.
std::string diagnosis_text(const Diagnosis& diagnosis);
/// Returns the first cause in a line.
std::string cause_line(const Diagnosis& diagnosis);
nlohmann::ordered_json diagnosis_json(const Diagnosis& diagnosis);

}  // namespace greta::tuner
