#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tuner/bench/acceptance.hpp"
#include "tuner/bench/compare.hpp"

namespace greta::tuner {

/// A comparison of two baselines, with what reports name beside it.
struct BaselineReport {
  /// The distinct values of one side's rows, as lists with commas.
  struct Side {
    std::string file{}, device{}, driver{}, compiler{}, greta_version{}, greta_revision{};
  };

  BaselineComparison comparison;
  Side base, fresh;
  double margin = 0;                         ///< smallest change that counts, as a share
  std::vector<AcceptanceUse> acceptances{};  ///< of a file of accepted slowdowns
};

/// Returns the side's values, from the rows of a file.
BaselineReport::Side side_of(const std::string& file, const std::vector<MeasuredResult>& results);

/// Returns the finding of a row for readers: "slower", "fails", "accepted" and so on.
std::string_view finding_text(const ResultChange& row);

/// The number of rows by finding.
struct FindingCounts {
  std::size_t slower = 0, accepted = 0, fails = 0, faster = 0, same = 0, inconclusive = 0;
};
FindingCounts counts_of(const BaselineComparison& comparison);

/// Returns what changed beside the code, a table of all rows, and a summary.
std::string baseline_text(const BaselineReport& report);

/// Returns the same as GitHub Flavored Markdown: a table of the rows with significant changes and
/// of those that one side lacks, then the others in a block that is closed at first. Names are
/// escaped.
std::string baseline_markdown(const BaselineReport& report);

/// Returns the comparison as one object (docs/json.md).
nlohmann::ordered_json baseline_json(const BaselineReport& report);

/// Returns the new times in Bencher's metric format: name, measure "latency", and value,
/// lower_value and upper_value in nanoseconds. Rows that failed have no time and are omitted.
nlohmann::ordered_json baseline_bmf(const BaselineReport& report);

/// Returns the new times as github-action-benchmark's customSmallerIsBetter: a list of name, unit
/// (ns), value, range and extra. Rows that failed have no time and are omitted.
nlohmann::ordered_json baseline_github(const BaselineReport& report);

}  // namespace greta::tuner
