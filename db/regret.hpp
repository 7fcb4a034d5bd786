#pragma once

#include <optional>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"

namespace greta::db {

/// The configuration that a winner means for a problem of another shape: its own; but where nothing
/// was surely faster than the operation's default there, the default of this problem, which follows
/// the shape. Throws Error where the problem has no default on this device.
Config carried_over(const Catalog& catalog, const Winner& winner, const Problem& problem,
                    const DeviceInfo& device);

/// Whether a winner's configuration is valid for the problem of `result` as it is carried over.
bool serves(const Catalog& catalog, const StoredWinner& winner, const StoredWinner& result);

/// What a look-up would answer if the problem of `result` were not known: among `winners`, the one
/// of the nearest other shape on the same device, not beyond most_shape_distance, cold or warm
/// alike, whose configuration is valid here as it is carried over. Of equally near ones the
/// smaller, by the first dimension that differs. nullptr where there is none, or this build has no
/// such operation.
const StoredWinner* nearest_neighbour(const Catalog& catalog, const StoredWinner& result,
                                      const std::vector<StoredWinner>& winners);

/// What the neighbour's configuration costs here, carried over and as far as it is recorded: it is
/// this winner or one of its ties, or the default that was timed beside the winner, or both were
/// timed in searches in the same circumstances.
std::optional<Regret> recorded_regret(const Catalog& catalog, const TunedDb& db,
                                      const StoredWinner& result, const StoredWinner& neighbour);

}  // namespace greta::db
