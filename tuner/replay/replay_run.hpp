#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tuner/replay/replay.hpp"
#include "tuner/search/budget.hpp"

namespace greta::tuner {

/// How a strategy is run on a recording.
struct ReplayOptions {
  Budget budget = Budget::trials_of(200);  ///< trials, or a share of the space
  std::uint64_t seed = 1;                  ///< of the recording's order and of the strategy
  int ahead = 1;                           ///< configurations asked for before results are told
};

/// The outcome of one run.
struct ReplayRun {
  std::vector<double> times_us;  ///< by evaluation; infinity if it failed
  double optimum_us = 0;
  double asking_s = 0;       ///< host time of all ask() and tell()
  double longest_ask_s = 0;  ///< host time of the longest ask() and the tell() before it

  /// Returns optimum / best time of the first evaluations; 0 if all of them failed.
  double share_after(std::uint64_t evaluations) const;
  /// Returns the number of evaluations after which the best time is at most `factor` times the
  /// optimum, or 0 if it never is.
  std::uint64_t evaluations_to(double factor) const;
};

/// Runs a strategy, given as for parse_strategy(), on a recording in a random order. The same
/// options give the same evaluations.
ReplayRun replay(const Recording& shuffled, const std::string& strategy,
                 const ReplayOptions& options);

/// A strategy's results over recordings and seeds.
struct ReplaySummary {
  std::string strategy;
  std::vector<double> shares;  ///< of the optimum, after each of summary_evaluations()
  double median_to_10 = 0;  ///< evaluations to come within 10 %; infinite: more than half never do
  double median_to_5 = 0;
  double runs_within_5 = 0;  ///< fraction of the runs that end within 5 %
  double ask_ms = 0;         ///< mean host time of asking once
  double longest_ask_ms = 0;
};

/// Returns the numbers of evaluations after which results are compared.
const std::vector<std::uint64_t>& summary_evaluations();

/// Summarises runs of one strategy, listed by recording: the geometric mean over recordings of the
/// mean over seeds; medians are over all runs. Shares after more evaluations than the shortest run
/// has are left out.
ReplaySummary summarise(const std::string& strategy,
                        const std::vector<std::vector<ReplayRun>>& runs);

}  // namespace greta::tuner
