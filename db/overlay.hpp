#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// The user's own database over the one that ships with an application. What the user tuned wins,
/// whatever its time: the circumstances are those of the user's machine.
class Overlay {
 public:
  /// Either may be missing.
  Overlay(std::optional<TunedDb> own, std::optional<TunedDb> shipped);

  /// As TunedDb::find_winner.
  std::optional<StoredWinner> find_winner(const std::string& device_fingerprint,
                                          const std::string& problem_key, bool cold) const;
  /// As TunedDb::winners, by problem.
  std::vector<StoredWinner> winners() const;

 private:
  std::vector<TunedDb> layers_;  // the first one wins
};

}  // namespace greta::db
