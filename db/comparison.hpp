#pragma once

#include <cstdint>
#include <vector>

#include "db/measurement.hpp"

namespace greta::db {

/// How two winners of one problem, on two devices, compare.
struct Comparison {
  std::int64_t faster = 0;  ///< the session whose winner is the faster one
  std::int64_t slower = 0;
  double ratio = 1;          ///< the slower one's time over the faster one's
  double low = 1, high = 1;  ///< its confidence interval
  double confidence = 0.95;
  /// Times in alternating turns, in pairs; empty where the ratio comes from the winners' own
  /// rounds.
  std::vector<double> faster_us, slower_us;

  bool sure() const { return low > 1; }
  bool measured() const { return !faster_us.empty(); }
};

/// Compares winners that were certified at different times, by the intervals of their medians. The
/// interval of their ratio is [low/high, high/low]: it holds whenever both of those do, so its
/// confidence is at least 0.90, and drift between the sessions is not in it.
Comparison compare_certified(std::int64_t session_a, const Measurement& a, std::int64_t session_b,
                             const Measurement& b);

}  // namespace greta::db
