#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/staleness.hpp"
#include "db/tuned_db.hpp"

namespace greta::tuner {

/// A problem that would gain by tuning it again.
struct NextStep {
  Problem problem;
  std::string device_id;
  bool cold = true;
  double gain_us = 0;  ///< most that a launch could gain: its time above the roofline; 0: unknown
  bool stale = false;  ///< the winner is of another driver, compiler or template
  std::string why{};   ///< "12.3 ms at 16 % of the roofline, at most 10.3 ms to gain"
};

/// Returns what a problem would gain; nothing if it is neither stale nor below the roofline.
std::optional<NextStep> next_step(const StoredWinner& result, StalenessJudge& judge);

/// Returns the results with most to gain, at most `most`: stale ones first, then by the time above
/// the roofline.
std::vector<NextStep> next_steps(const std::vector<StoredWinner>& results, StalenessJudge& judge,
                                 std::size_t most);

}  // namespace greta::tuner
