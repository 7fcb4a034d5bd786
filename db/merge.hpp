#pragma once

#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Two different results of one problem in the same circumstances.
struct MergeConflict {
  StoredWinner kept;
  StoredWinner dropped;
  bool mine_kept = true;
};

/// What a merge did with the other database's results.
struct MergeReport {
  std::size_t added = 0;         ///< new circumstances or problems
  std::size_t side_by_side = 0;  ///< added beside results of other circumstances
  std::size_t replaced = 0;      ///< better than the existing result
  std::size_t worse = 0;         ///< worse than the existing result, which is kept
  std::size_t same = 0;
  std::size_t uncertified = 0;  ///< in the other database; any certified one wins
  std::size_t pinned = 0;       ///< left out, because the answer here is pinned to another one
  std::size_t unsafe = 0;       ///< failed health checks that are new or later
  std::vector<MergeConflict> conflicts;
};

/// The rows that must be written to a database so that it contains both.
struct Merge {
  Contents write;
  MergeReport report;
};

/// Whether a result was certified: it passed the last check and was timed in rounds.
bool is_certified(const Winner& winner);

/// A total order of the results of one problem in the same circumstances: by certified before
/// others, by median, by number of raw samples (more first), with a regret before without, and by
/// content.
bool is_better(const StoredWinner& a, const StoredWinner& b);

/// Merges two databases. Of results with the same problem, cold/warm, device, driver, compiler and
/// template key, the better one is kept. Others are kept side by side. Devices are as last
/// seen, with the cards of both. Of each card's ceilings and failed health checks the latest are
/// kept, and the latest peers and
/// kernels. A check that passes leaves no record,
/// so a failure in either database remains until the check runs again. The answers that `mine` has
/// pinned stay. Without pins, the merge is idempotent, commutative and associative
/// (docs/decisions/0012-a-winner-for-each-environment.md).
Merge merge(const Contents& mine, const Contents& theirs);

}  // namespace greta::db
