#pragma once

#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Whether two devices of a database, which may hold several machines, are one card.
bool of_one_card(const DeviceInfo& a, const DeviceInfo& b);

/// Puts the winners of a problem on one card in order, the fastest first. `measured`: comparisons
/// in alternating turns; between others the certified intervals decide.
CardWinners rank_winners(std::vector<StoredWinner> winners,
                         const std::vector<Comparison>& measured);

}  // namespace greta::db
