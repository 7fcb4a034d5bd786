#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "tuner/bench/benchmark.hpp"

namespace greta::tuner::cli {

/// Benchmarks run by Google Benchmark: each is one of its benchmarks with manual times, each
/// repetition of it one block of samples.
struct GoogleRun {
  struct Entry {
    std::string name;
    Benchmark benchmark;
    MeasuredResult result{};  ///< samples, verdict and failure of what is done
    std::size_t device = 0;   ///< position among those that are benchmarked
    int blocks = 0;           ///< that were asked for so far
    int checked = 0;          ///< runs
  };

  std::vector<Entry> entries;
  int iterations = 1;  ///< blocks in a run
  int batch = 1;       ///< samples in a block
  int runs = 1;
  bool interleave = true;  ///< blocks of all benchmarks in random order
  std::string filter;      ///< of names; empty: all
  double settle_s = 0;     ///< at most, for more blocks of kernels that still scatter (compare.hpp)
  std::vector<std::string> flags;  ///< Google Benchmark's own, which win
  const std::atomic<bool>* stop = nullptr;

  /// Runs all. Then kernels that have not settled have more blocks, in rounds through these in
  /// random order, up to four times as many: at most for `settle_s`, and for 1.75 times as long as
  /// the rest took. These are in results, but not in what Google Benchmark reports. Results of
  /// those that the filter leaves out have no blocks and no failure. Returns false where Google
  /// Benchmark's flags asked for other output on stdout (its console format, JSON or a list of
  /// names). Throws CommandError for flags it does not know, and where the filter leaves nothing.
  bool run();
};

}  // namespace greta::tuner::cli
