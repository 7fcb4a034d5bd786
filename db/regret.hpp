#pragma once

#include <optional>
#include <vector>

#include "db/tuned_db.hpp"

namespace greta {

/// What a look-up would answer if the problem of `result` were not known: among `winners`, the one
/// of the nearest other shape on the same device, cold or warm alike, whose configuration is valid
/// here. Of equally near ones the smaller, by the first dimension that differs. nullptr where there
/// is none, or this build has no such operation.
const StoredWinner* nearest_neighbour(const StoredWinner& result,
                                      const std::vector<StoredWinner>& winners);

/// What the neighbour's configuration costs here, as far as it is recorded: it is this winner or
/// one of its ties, or both were timed in searches in the same circumstances.
std::optional<Regret> recorded_regret(const TunedDb& db, const StoredWinner& result,
                                      const StoredWinner& neighbour);

}  // namespace greta
