#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tuner/bench/benchmark.hpp"
#include "tuner/cli/bench/table.hpp"
#include "tuner/evaluate/evaluator.hpp"

namespace greta::tuner::cli {

/// Benchmarks that are checked and not timed. Each adds a row, whose samples are how many checks
/// were right.
struct VerifyRun {
  std::string filter;  ///< a regular expression on names; empty: all
  int runs = 1;
  int random = 0;  ///< configurations of each operation
  std::uint64_t seed = 0;
  double timeout_s = 30;

  /// What a benchmark runs, on new inputs in each run.
  void check(const std::string& name, Benchmark& benchmark, std::vector<TableRow>& rows,
             const std::atomic<bool>& stop) const;
  /// Random configurations of random small problems of each operation.
  void check_random(Evaluator& evaluator, std::vector<TableRow>& rows,
                    const std::atomic<bool>& stop) const;
};

/// Rows of checks for people, a line each.
std::string verify_table(const std::vector<TableRow>& rows);

}  // namespace greta::tuner::cli
