#pragma once

#include <optional>
#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// The user's own database on top of the one that ships with an application. The user's results
/// take precedence whatever their time, because they were measured on the user's machine.
class Overlay {
 public:
  /// Either may be missing.
  Overlay(std::optional<TunedDb> own, std::optional<TunedDb> shipped);

  /// Does the same as TunedDb::find_winner().
  std::optional<StoredWinner> find_winner(const std::string& device_fingerprint,
                                          const std::string& problem_key, bool cold) const;
  /// Does the same as TunedDb::winners(). The results are sorted by problem.
  std::vector<StoredWinner> winners() const;

 private:
  std::vector<TunedDb> layers_;  // the first one takes precedence
};

}  // namespace greta::db
