#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// What happened to the answer for a problem on a device between two databases.
enum class Change {
  same,    ///< the same configuration, or none that is significantly faster or slower
  better,  ///< significantly faster
  worse,   ///< significantly slower
  lost,    ///< the new database has no answer
  added    ///< the old database has no answer
};

/// Returns "same", "better", "worse", "lost", "new".
std::string_view to_string(Change change);

struct AnswerChange {
  Change change = Change::same;
  std::optional<StoredWinner> before, after;  ///< at least one
  /// The old time divided by the new one; 1 if the configuration is the same, 0 if one is missing.
  double ratio = 0;
  /// "compiler: clang 14 instead of g++ 12": what the old answer was certified with and the new one
  /// was not, so that neither time speaks for the other; empty if nothing differs.
  std::string circumstances;

  const StoredWinner& either() const { return after ? *after : *before; }
};

/// Compares the answers of two databases: the first result for each problem, device, and cold or
/// warm caches, which TunedDb::winners() prefers: what a look-up on the device as last seen gives.
/// Times of two sessions are affected by the cards and their clocks, so answers are compared by
/// their speed-ups over the default configuration, which each session measured beside them. If the
/// templates differ, or the default does by its configuration or its time, they are compared by
/// their times, with a margin of 10 % and 1 µs. A difference is significant if the intervals do not
/// overlap. The order is that of `before`, then new problems.
std::vector<AnswerChange> answer_changes(const std::vector<StoredWinner>& before,
                                         const std::vector<StoredWinner>& after);

}  // namespace greta::db
