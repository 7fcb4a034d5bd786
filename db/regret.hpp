#pragma once

#include <optional>
#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/catalog.hpp"

namespace greta::db {

/// The least speedup over the default, by its interval's lower bound, with which a winner serves
/// other shapes of an operation whose untuned answers are not predicted. Less is within what
/// another shape changes, and the default is that of the shape (docs/lookup.md).
constexpr double least_carried_speedup = 1.05;

/// Returns whether a winner implies the default for problems of other shapes: it is the default,
/// which nothing beat significantly, or gains less than least_carried_speedup. Chains have no
/// parameters that depend on the shape: the latter does not hold for them.
bool implies_default(const Operation& operation, const Winner& winner);

/// Returns the configuration that a winner implies for a problem of another shape. This is the
/// winner's own, unless it implies_default(). In that case it is the default for this problem,
/// which depends on the shape. A configuration of an older template is returned as it is used today
/// (Catalog::usable), or as it is stored if it is not valid. Throws Error if the problem has no
/// default on this device.
Config carried_over(const Catalog& catalog, const Winner& winner, const Problem& problem,
                    const DeviceInfo& device);

/// Returns whether `config`, the winner's as it is used for a problem of another shape, has
/// narrower loads (VEC) than that problem permits because the winner's own shape permits no wider
/// ones in any configuration, as rows of odd lengths do. Then it serves the problem badly, however
/// much it gains. Operations whose untuned answers are predicted compare the predictions instead,
/// and chains always use their winners' configurations.
bool loads_narrower(const Catalog& catalog, const StoredWinner& winner, const Config& config,
                    const Problem& problem, const DeviceInfo& device);

/// Whether a winner's configuration, as carried over, is valid for the problem of `result` and has
/// loads as wide as that permits.
bool serves(const Catalog& catalog, const StoredWinner& winner, const StoredWinner& result);

/// Returns the winner that a look-up would use if the problem of `result` were not known. Among
/// `winners`, this is the one of the nearest other shape on the same device within
/// most_shape_distance, equally cold or warm, whose configuration as carried over is valid here. Of
/// equally near ones it is the smaller, by the first dimension that differs. Returns nullptr if
/// there is none, or if this build lacks the operation.
const StoredWinner* nearest_neighbour(const Catalog& catalog, const StoredWinner& result,
                                      const std::vector<StoredWinner>& winners);

/// Returns the cost of the neighbour's configuration here, as carried over, if it is recorded. That
/// is the case if it is this winner or one of its ties, if it is the default that was timed with
/// the winner, or if both were timed in searches in the same circumstances.
std::optional<Regret> recorded_regret(const Catalog& catalog, const TunedDb& db,
                                      const StoredWinner& result, const StoredWinner& neighbour);

}  // namespace greta::db
