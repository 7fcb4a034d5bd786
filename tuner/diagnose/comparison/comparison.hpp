#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "tuner/diagnose/changes/change_trials.hpp"
#include "tuner/diagnose/comparison/text_edits.hpp"
#include "tuner/diagnose/failed_case.hpp"

namespace greta::tuner {

/// An edit of one of the files that a kernel is made of.
struct FileEdit {
  std::string file;
  TextEdit edit;
};

/// A set of edits with which results are correct, and how it was found.
struct ReducedEdits {
  ChangeOutcome unchanged = ChangeOutcome::untried;  ///< without an edit
  ChangeOutcome whole = ChangeOutcome::untried;      ///< with all
  std::vector<FileEdit> edits;                       ///< empty: results with all are not correct
  bool with_others = false;                          ///< correct with other operands, too
};

/// Reduces edits of lines, and then of the words in those that are left, to a smallest set with
/// which results are correct. Tries first none of them, and then all.
ReducedEdits reduced_edits(
    const SourceFiles& files, const std::vector<FileEdit>& lines,
    const std::function<ChangeOutcome(const std::vector<FileEdit>& edits)>& outcome_of);

/// Lines of a kernel's file that make results wrong.
struct GuiltyLines {
  std::string file;
  std::size_t line = 0;          ///< of the first one, from 1
  std::string text, known_good;  ///< as they are, and with correct results; one may be empty
};

/// What a comparison with a known-good version gave.
struct SourceComparison {
  std::string with;                   ///< the version
  std::size_t differences = 0;        ///< groups of lines that differ
  std::size_t trials = 0;             ///< of versions that were compiled and run
  std::vector<GuiltyLines> guilty{};  ///< if the lines of the version replace them, results are
                                      ///< correct; empty: none are known
  bool with_others = false;           ///< correct with other operands, too
  bool smallest = true;               ///< none of them can be left out
  std::string why{};                  ///< why none are known
};

/// Finds which differences of a case's sources to a known-good version make its results wrong: the
/// smallest set whose reversal makes all results correct, with the case's operands and three others
/// (ChangeTrials), in 20 runs if a race shows. The method is delta debugging (reduction.hpp). It
/// runs in a process of its own, on the CPU device of search_change().
SourceComparison compare_sources(const Catalog& catalog, const FailedCase& failed,
                                 const KnownGood& known_good, double seconds);

}  // namespace greta::tuner
