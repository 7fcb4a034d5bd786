#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "tuner/session/session.hpp"

namespace greta::tuner {

/// What a live display shows of a session, one member for each row. Empty rows are not shown.
struct LiveView {
  std::string problem;
  std::string device;
  std::string phase;
  std::string time;    ///< "42 %, 35 s left of 60 s, with certification"
  std::string trials;  ///< "30 of 35 passed, 4 correctness, 1 compile"
  std::string best;    ///< time, speed-up over the default, share of the roofline
  std::string config;  ///< of the best candidate
};

/// Sets the rows that change with each trial: from `time` on.
void update(LiveView& view, const SessionResult& result, const Budget& budget);

/// Returns the lines of a display of this width. Long texts continue on the next line at a space,
/// so that no word and no number is divided.
std::vector<std::string> live_lines(const LiveView& view, std::size_t columns);

/// Returns "30 of 35 passed, 4 correctness, 1 compile".
std::string counts_text(const std::vector<Trial>& trials);

/// Returns the time of the best candidate so far, with its interval, its speed-up over the default,
/// which is not certified yet, and the share of the roofline.
std::string best_so_far(const SessionResult& result, const Trial& best);

/// Returns how much of a budget is used and left: "42 %, 35 s left of 60 s, with certification".
std::string budget_text(const Budget& budget);

}  // namespace greta::tuner
