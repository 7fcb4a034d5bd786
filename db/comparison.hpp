#pragma once

#include <cstdint>
#include <vector>

#include "db/measurement.hpp"

namespace greta::db {

/// The comparison of two winners of one problem, on two devices.
struct Comparison {
  std::int64_t faster = 0;  ///< session with the faster winner
  std::int64_t slower = 0;
  double ratio = 1;          ///< time of the slower divided by time of the faster
  double low = 1, high = 1;  ///< confidence interval of the ratio
  double confidence = 0.95;
  /// Times in alternating turns, in pairs. Empty if the ratio comes from the winners' own rounds.
  std::vector<double> faster_us, slower_us;

  bool sure() const { return low > 1; }
  bool measured() const { return !faster_us.empty(); }
};

/// Compares winners that were certified at different times, by the intervals of their medians. The
/// interval of their ratio is [low/high, high/low]. It holds whenever both of those do, so its
/// confidence is at least 0.90. It does not account for drift between the sessions.
Comparison compare_certified(std::int64_t session_a, const Measurement& a, std::int64_t session_b,
                             const Measurement& b);

}  // namespace greta::db
