#pragma once

#include <optional>
#include <string>

#include "db/tuned_db.hpp"
#include "kernels/model/operation.hpp"

namespace greta::tuner {

/// Returns the best known configuration of a variant for a problem on a device: the fastest of the
/// database's trials with cold or warm caches; without any, the one of the variant's defaults that
/// the static prior predicts to be the fastest, or the first where it predicts none; without any,
/// one of its space, chosen likewise. Nothing if the variant has no valid configuration.
std::optional<Config> best_known(const Operation& operation, const std::string& variant,
                                 const Problem& problem, const DeviceInfo& device,
                                 const TunedDb& db, bool cold);

}  // namespace greta::tuner
