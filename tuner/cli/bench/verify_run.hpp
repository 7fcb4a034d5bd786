#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tuner/bench/benchmark.hpp"
#include "tuner/cli/bench/table.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner::cli {

/// Checks benchmarks without timing. Each adds a result whose count is the number of passed checks.
struct VerifyRun {
  std::string filter;  ///< regular expression on names; empty: all
  int runs = 1;
  int random = 0;  ///< configurations per operation
  std::uint64_t seed = 0;
  double timeout_s = 30;

  /// Checks a benchmark's configuration, on new inputs in each run.
  void check(const std::string& name, const Benchmark& benchmark, std::vector<NamedResult>& results,
             const std::atomic<bool>& stop) const;
  /// Checks random configurations of random small problems of each operation.
  void check_random(Evaluator& evaluator, std::vector<NamedResult>& results,
                    const std::atomic<bool>& stop) const;
};

}  // namespace greta::tuner::cli
