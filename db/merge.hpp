#pragma once

#include <string>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Two results of one problem in the same circumstances that are not the same.
struct MergeConflict {
  StoredWinner kept;
  StoredWinner dropped;
  bool mine_kept = true;
};

/// What a merge does with the other database's results.
struct MergeReport {
  std::size_t added = 0;         ///< circumstances or problems that were not there
  std::size_t side_by_side = 0;  ///< of these, beside results of other circumstances
  std::size_t replaced = 0;      ///< better than what was there
  std::size_t worse = 0;         ///< than what was there, which stays
  std::size_t same = 0;
  std::size_t uncertified = 0;  ///< of the other database's: they lose to any certified one
  std::size_t unsafe = 0;       ///< failed health checks that were not known, or are later
  std::vector<MergeConflict> conflicts;
};

/// What has to be written to a database so that it holds both.
struct Merge {
  Contents write;
  MergeReport report;
};

/// Whether a result was certified: right in the last check, and timed in rounds.
bool is_certified(const Winner& winner);

/// An order of all results of one problem and the same circumstances: certified before others, then
/// by median, by raw samples (more first), with a regret before without, and last by content.
bool is_better(const StoredWinner& a, const StoredWinner& b);

/// Joins two databases. Of results that share problem, cold/warm, device, driver, compiler and
/// template key, the better one stays; others stand side by side. Devices are as last seen,
/// ceilings, peers and failed health checks the latest. A check that passes leaves no record, so
/// what failed in either stays until it is checked again. The join is idempotent, commutative and
/// associative (docs/decisions/0012-a-winner-for-each-set-of-circumstances.md).
Merge merge(const Contents& mine, const Contents& theirs);

}  // namespace greta::db
