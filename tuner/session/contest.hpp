#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "db/comparison.hpp"
#include "tuner/evaluate/evaluator.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// A device in a contest: the result of its session and the evaluator that runs the winner.
struct Entrant {
  Evaluator& evaluator;
  const SessionResult& session;  ///< must have a winner
};

/// The fastest of several devices, or of several APIs of one card, for a problem.
struct ContestResult {
  struct Other {
    std::size_t entrant = 0;  ///< position among the entrants
    Comparison comparison;    ///< comparison of the fastest entrant with this one
  };
  std::size_t fastest = 0;  ///< position among the entrants
  std::vector<Other> others;
  std::vector<std::string> notes;

  bool sure() const;  ///< whether the fastest is significantly faster than all others
};

/// Times the winners of one problem in alternating turns, each on its device, in a new random order
/// every turn. Ends when every comparison is precise, after `seconds`, or on `stop`. If turns are
/// not possible (insufficient memory for both, a device that drifts), the certified intervals
/// decide, and a note gives the reason.
ContestResult hold_contest(const std::vector<Entrant>& entrants, const SessionOptions& options,
                           double seconds, const std::atomic<bool>& stop);

}  // namespace greta::tuner
