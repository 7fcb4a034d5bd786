#pragma once

#include <map>
#include <optional>
#include <string>

#include "db/lookup/known_winners.hpp"

namespace greta::db {

/// The mean cost of answers by their origin.
class ExpectedRegret {
 public:
  /// Returns 1 for an exact answer. For the nearest shape's, returns the mean stored regret of this
  /// operation's problems on this device (greta-db regret). For a default, returns the mean ratio
  /// of its time to the winners'. Returns nothing if none is recorded, and for answers from another
  /// device or from the static prior.
  std::optional<double> of(KnownWinners& known, const Problem& problem, LookupOrigin origin);

 private:
  struct Means {
    std::optional<double> neighbour, fallback;
  };
  std::map<std::string, Means> by_op_;
};

}  // namespace greta::db
