#pragma once

#include <map>
#include <optional>
#include <string>

#include "db/lookup/known_winners.hpp"

namespace greta::db {

/// What answers cost on average, by how they were found.
class ExpectedRegret {
 public:
  /// 1 for an exact one. For the nearest shape's, the mean regret that is stored of this
  /// operation's problems on this device (greta-db regret); for a default, its mean time over the
  /// winners'. Nothing where none is recorded, and for what comes from another device.
  std::optional<double> of(const KnownWinners& known, const Problem& problem, LookupOrigin origin);

 private:
  struct Means {
    std::optional<double> neighbour, fallback;
  };
  std::map<std::string, Means> by_op_;
};

}  // namespace greta::db
