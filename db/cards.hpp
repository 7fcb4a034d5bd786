#pragma once

#include <vector>

#include "db/tuned_db.hpp"

namespace greta::db {

/// Whether two devices of a database are the same card. A database may contain several machines.
bool of_one_card(const DeviceInfo& a, const DeviceInfo& b);

/// Sorts the winners of a problem on one card, fastest first. `measured` holds comparisons in
/// alternating turns; winners without one are compared by their certified intervals.
CardWinners rank_winners(std::vector<StoredWinner> winners,
                         const std::vector<Comparison>& measured);

}  // namespace greta::db
