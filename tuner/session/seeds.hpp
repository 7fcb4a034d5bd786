#pragma once

#include <vector>

#include "db/tuned_db.hpp"
#include "kernels/model/space.hpp"
#include "tuner/session/session.hpp"

namespace greta::tuner {

/// Returns the valid configurations that a search starts with: the default, the user's, the best of
/// earlier sessions, and the best of other devices and problems.
std::vector<Config> seeds(const Space& space, const SessionResult& result,
                          const SessionOptions& options, const TunedDb& db);

}  // namespace greta::tuner
