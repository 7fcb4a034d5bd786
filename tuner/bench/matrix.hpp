#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "db/lookup/lookup.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/measure/ceilings.hpp"
#include "tuner/measure/measured_result.hpp"

namespace greta::tuner {

/// One way to compute a problem: a configuration and what was measured of it.
struct MatrixWay {
  Config config;
  std::string known;  ///< how the configuration is known: "recorded", "untuned", "forced", …
  bool runs = false;  ///< the model runs this one
  MeasuredResult result{};  ///< error and times, or why it failed
};

/// A problem of a model in each variant.
struct MatrixRow {
  std::vector<std::string> names{};  ///< of the model's operations that pose it, e.g. "qkv"
  std::int64_t tokens = 0;           ///< of the pass that they are in
  int count = 0;                     ///< how often the pass runs it
  Problem problem;
  std::vector<MatrixWay> ways{};
  /// Variants without a configuration for the problem on this device, and why.
  std::vector<std::pair<std::string, std::string>> absent{};
};

/// Fills a row's ways: the best known configuration of each variant (Lookup::best_of), and what
/// runs, if that is another one.
void add_ways(MatrixRow& row, const Lookup& lookup, const Answer& runs);

/// How the ways of a row are measured.
struct MatrixOptions {
  int rounds = 20;         ///< interleaved rounds
  double seconds = 2;      ///< after which no further round of a row begins
  std::uint64_t seed = 1;  ///< of the inputs
  TrialLimits limits{};
  std::vector<Ceiling> ceilings{};  ///< of the device, for shares of the roofline; may be empty
};

/// Checks each way against the FP64 reference, and times the correct ones in interleaved rounds. A
/// way that fails keeps its failure. Throws Error if the evaluator can't go on.
void measure(MatrixRow& row, Evaluator& evaluator, const MatrixOptions& options);

/// Returns a way's median divided by that of the fastest way of its row, from paired rounds; 0s if
/// either was not timed.
Interval relative_time(const MatrixRow& row, const MatrixWay& way);

}  // namespace greta::tuner
