#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "tuner/bench/benchmark.hpp"

namespace greta::tuner::cli {

/// Runs benchmarks with Google Benchmark. Each becomes one of its benchmarks with manual times, and
/// each repetition is one block of samples.
struct GoogleRun {
  struct Entry {
    std::string name;
    Benchmark benchmark;
    MeasuredResult result{};  ///< samples, verdict and failure so far
    std::size_t device = 0;   ///< position among the benchmarked devices
    int blocks = 0;           ///< number of blocks requested so far
    int checked = 0;          ///< number of checked runs
  };

  std::vector<Entry> entries;
  int iterations = 1;  ///< blocks in a run
  int batch = 1;       ///< samples in a block
  int runs = 1;
  bool interleave = true;          ///< blocks of all benchmarks in random order
  std::string filter;              ///< regular expression on names; empty: all
  double settle_s = 0;             ///< time limit for additional blocks (settled() in compare.hpp)
  std::vector<std::string> flags;  ///< Google Benchmark's flags, which take precedence
  const std::atomic<bool>* stop = nullptr;
  /// Called with the entries of which blocks are taken next, before the first block and before each
  /// round of additional blocks. May be null.
  std::function<void(const std::vector<const Entry*>&)> announce{};

  /// Checks kernels whose blocks are taken apart, and runs all benchmarks. Then takes additional
  /// blocks of kernels that have not settled, in rounds in random order, up to four times the
  /// planned number (twice for blocks that are taken apart), for at most `settle_s` and at most
  /// 1.75 times as long as the rest took. Additional blocks are in the results, but not in Google
  /// Benchmark's reports. Results excluded by the filter have no blocks and no failure. Returns
  /// false if Google Benchmark's flags requested other output on stdout (its console format, JSON
  /// or a list of names). Throws CommandError for unknown flags, and if the filter matches nothing.
  bool run();
};

/// Returns the expression of Google Benchmark's own filter; empty: all.
std::string filter_of(const std::vector<std::string>& flags);

/// Returns whether Google Benchmark's flags contain this one, e.g. "--benchmark_min_time".
bool given(const std::vector<std::string>& flags, std::string_view name);

}  // namespace greta::tuner::cli
