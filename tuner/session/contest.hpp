#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "db/comparison.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// A device that takes part in a contest: the winner of its session and where it runs.
struct Entrant {
  Evaluator& evaluator;
  const SessionResult& session;  ///< has a winner
};

/// Which of several devices, or of one card's APIs, is the fastest for a problem.
struct ContestResult {
  struct Other {
    std::size_t entrant = 0;  ///< position among the entrants
    Comparison comparison;    ///< of the fastest with this one
  };
  std::size_t fastest = 0;  ///< position among the entrants
  std::vector<Other> others;
  std::vector<std::string> notes;

  bool sure() const;  ///< the fastest is faster than all others for sure
};

/// Times the winners of one problem in alternating turns, each on its device, the order of a turn
/// drawn anew; ends when every comparison is narrow, after `seconds` or on `stop`. Where that is
/// not possible (no memory for two at a time, a device that drifts), the certified intervals
/// decide, and a note says why.
ContestResult hold_contest(const std::vector<Entrant>& entrants, const SessionOptions& options,
                           double seconds, const std::atomic<bool>& stop);

}  // namespace greta::tuner
